"""A client of Python, named first, against a pod whose port 7 echoes, by a local port that is free: prints a JSON object, one member for each check that it can make."""

import asyncio
import hashlib
import json
import os
import sys

client_name, kubeconfig, pod_name, local_port = sys.argv[1:]
FORWARDS = 20
SIZE = 5 * 1024 * 1024
DATA = bytes(range(256)) * (SIZE // 256)
DIGEST = hashlib.sha256(DATA).hexdigest()

FAILS = ["sh", "-c", "echo out; echo err >&2; exit 3"]
DOWNLOAD = ["sh", "-c", f"seq 1000000000 1999999999 | head -c {SIZE}"]
"""Reads to the end of its input, which the client has to close."""
UPLOAD = ["sh", "-c", "sha256sum | cut -c1-64"]
UPLOAD_COUNTED = ["sh", "-c", f"head -c {SIZE} | sha256sum | cut -c1-64"]


def downloaded(text, code):
    return [len(text), text[:11].decode(), code]


async def echoed(port, number):
    """One connection to a forward."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    wanted = f"forward {number}\n".encode() * 1000
    writer.write(wanted)
    await writer.drain()
    got = await asyncio.wait_for(reader.readexactly(len(wanted)), 20)
    writer.close()
    return got == wanted


async def kr8s_client():
    """Sends no input: it offers v4 only, and refuses it there. Its forwards are local ports over WebSocket."""
    import kr8s.asyncio

    api = await kr8s.asyncio.api(kubeconfig=kubeconfig)
    pod = await kr8s.asyncio.objects.Pod.get(pod_name, namespace="default", api=api)
    failed = await pod.exec(FAILS, container="main", check=False)
    got = await pod.exec(DOWNLOAD, container="main", check=False)
    async with pod.portforward(7, local_port=int(local_port)) as port:
        forwards = sum(await asyncio.gather(*(echoed(port, number) for number in range(FORWARDS))))
    return {
        "exit_code": [failed.stdout.decode(), failed.stderr.decode(), failed.returncode],
        "download": downloaded(got.stdout, got.returncode),
        "forwards": forwards,
    }


async def lightkube_client():
    """Has no port-forward."""
    os.environ["KUBECONFIG"] = kubeconfig
    from lightkube import AsyncClient

    client = AsyncClient()

    async def run(command, stdin=None):
        return await client.exec(
            pod_name,
            namespace="default",
            container="main",
            command=command,
            stdin=stdin,
            stdout=True,
            stderr=True,
            decode=None,
            timeout=30,
        )

    failed = await run(FAILS)
    got = await run(DOWNLOAD)
    upload = await run(UPLOAD, stdin=DATA)
    return {
        "exit_code": [failed.stdout.decode(), failed.stderr.decode(), failed.exit_code],
        "download": downloaded(got.stdout, got.exit_code),
        "upload": upload.stdout.decode().strip() == DIGEST,
    }


async def kubernetes_asyncio_client():
    """Speaks v4 and gives its user the frames: its input has no end, and its port-forward is the legacy protocol."""
    from kubernetes_asyncio import client, config
    from kubernetes_asyncio.stream import WsApiClient

    await config.load_kube_config(config_file=kubeconfig)

    async def run(api, command, data=b""):
        request = await api.connect_get_namespaced_pod_exec(
            pod_name,
            "default",
            container="main",
            command=command,
            stdin=data != b"",
            stdout=True,
            stderr=True,
            tty=False,
            _preload_content=False,
        )
        channels = {1: b"", 2: b"", 3: b""}
        async with request as socket:
            for at in range(0, len(data), 32768):
                await socket.send_bytes(b"\0" + data[at : at + 32768])
            async for message in socket:
                channels[message.data[0]] += message.data[1:]
        return channels[1], channels[2], WsApiClient.parse_error_data(channels[3])

    async def forward(api, number):
        request = await api.connect_get_namespaced_pod_portforward(
            pod_name, "default", ports="7", _preload_content=False
        )
        wanted, got = f"forward {number}\n".encode() * 1000, b""
        async with request as socket:
            await socket.send_bytes(b"\0" + wanted)
            starts = 0
            async for message in socket:
                # Each of the two channels begins with the port.
                if starts < 2:
                    starts += 1
                    continue
                got += message.data[1:]
                if len(got) >= len(wanted):
                    break
        return got == wanted

    async with WsApiClient() as connection:
        api = client.CoreV1Api(connection)
        out, err, code = await run(api, FAILS)
        text, _, ended = await run(api, DOWNLOAD)
        digest, _, _ = await run(api, UPLOAD_COUNTED, DATA)
        forwards = sum(await asyncio.gather(*(forward(api, number) for number in range(FORWARDS))))
    return {
        "exit_code": [out.decode(), err.decode(), code],
        "download": downloaded(text, ended),
        "upload": digest.decode().strip() == DIGEST,
        "forwards": forwards,
    }


print(json.dumps(asyncio.run(globals()[f"{client_name}_client"]())))
