"""The official Python client against a pod whose port 7 echoes: prints a JSON object, one member for each check."""

import hashlib
import json
import sys

from kubernetes import client, config
from kubernetes.stream import portforward, stream

FORWARDS = 20
SIZE = 5 * 1024 * 1024

config.load_kube_config(config_file=sys.argv[1])
pod = sys.argv[2]
api = client.CoreV1Api()


def run(command, stdin=False):
    return stream(
        api.connect_get_namespaced_pod_exec,
        pod,
        "default",
        container="main",
        command=command,
        stdin=stdin,
        stdout=True,
        stderr=True,
        tty=False,
        binary=True,
        _preload_content=False,
    )


def output(session):
    parts = []
    while session.is_open():
        session.update(timeout=10)
        if session.peek_stdout():
            parts.append(session.read_stdout())
    if session.peek_stdout():
        parts.append(session.read_stdout())
    return b"".join(parts)


def exit_code():
    session = run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    session.run_forever(timeout=30)
    return [session.read_stdout().decode(), session.read_stderr().decode(), session.returncode]


def download():
    session = run(["sh", "-c", f"seq 1000000000 1999999999 | head -c {SIZE}"])
    text = output(session)
    return [len(text), text[:11].decode(), session.returncode]


def upload():
    """This client cannot close its input, so the command reads as much as it is told."""
    data = bytes(range(256)) * (SIZE // 256)
    session = run(["sh", "-c", f"head -c {SIZE} | sha256sum | cut -c1-64"], stdin=True)
    for at in range(0, SIZE, 32768):
        session.write_stdin(data[at : at + 32768])
    return output(session).decode().strip() == hashlib.sha256(data).hexdigest()


def forwards():
    echoed = 0
    for number in range(FORWARDS):
        forward = portforward(api.connect_get_namespaced_pod_portforward, pod, "default", ports="7")
        socket = forward.socket(7)
        socket.settimeout(20)
        wanted = f"forward {number}\n".encode() * 1000
        socket.sendall(wanted)
        got = b""
        while len(got) < len(wanted):
            part = socket.recv(65536)
            if not part:
                break
            got += part
        socket.close()
        echoed += got == wanted
    return echoed


print(json.dumps({check.__name__: check() for check in (exit_code, download, upload, forwards)}))
