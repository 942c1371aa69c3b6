import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.LocalPortForward;
import io.fabric8.kubernetes.client.dsl.ContainerResource;
import io.fabric8.kubernetes.client.dsl.ExecWatch;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.File;
import java.net.Socket;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.concurrent.TimeUnit;

/** Java's fabric8 client against pods whose port 7 echoes: prints a line for each pod, a JSON object with a member for each check. */
class Fabric8Client {
    static final int FORWARDS = 20;
    static final int SIZE = 5 * 1024 * 1024;
    static ContainerResource container;

    record Ended(byte[] out, byte[] err, int code) {}

    static Ended run(byte[] input, String script) throws Exception {
        var out = new ByteArrayOutputStream();
        var err = new ByteArrayOutputStream();
        String[] command = {"sh", "-c", script};
        try (ExecWatch watch = input == null
                ? container.writingOutput(out).writingError(err).exec(command)
                : container.redirectingInput().writingOutput(out).writingError(err).exec(command)) {
            if (input != null) {
                watch.getInput().write(input);
                watch.getInput().flush();
            }
            int code = watch.exitCode().get(60, TimeUnit.SECONDS);
            return new Ended(out.toByteArray(), err.toByteArray(), code);
        }
    }

    static boolean echoes(int port, int number) throws Exception {
        byte[] wanted = ("forward " + number + "\n").repeat(1000).getBytes();
        byte[] got = new byte[wanted.length];
        try (var socket = new Socket("127.0.0.1", port)) {
            socket.setSoTimeout(20_000);
            socket.getOutputStream().write(wanted);
            new DataInputStream(socket.getInputStream()).readFully(got);
        }
        return Arrays.equals(wanted, got);
    }

    static String checked(KubernetesClient client, String name) throws Exception {
        var pod = client.pods().inNamespace("default").withName(name);
        container = pod.inContainer("main");
        var failed = run(null, "echo out; echo err >&2; exit 3");
        var got = run(null, "seq 1000000000 1999999999 | head -c " + SIZE);
        byte[] data = new byte[SIZE];
        for (int at = 0; at < SIZE; at += 1) data[at] = (byte) at;
        // This client cannot close its input, so the command reads as much as it is told.
        var digest = run(data, "head -c " + SIZE + " | sha256sum | cut -c1-64");
        String wanted = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(data));
        int forwards = 0;
        try (LocalPortForward forward = pod.portForward(7)) {
            for (int number = 0; number < FORWARDS; number += 1)
                if (echoes(forward.getLocalPort(), number)) forwards += 1;
        }
        return String.format(
            "{\"exit_code\":[%s,%s,%d],\"download\":[%d,%s,%d],\"upload\":%b,\"forwards\":%d}",
            quoted(failed.out), quoted(failed.err), failed.code,
            got.out.length, quoted(Arrays.copyOf(got.out, 11)), got.code,
            new String(digest.out).strip().equals(wanted), forwards);
    }

    static String quoted(byte[] text) {
        return '"' + new String(text).replace("\n", "\\n") + '"';
    }

    public static void main(String[] args) throws Exception {
        // Its threads start slowly on a busy machine.
        var config = Config.fromKubeconfig(new File(args[0]));
        config.setRequestTimeout(60_000);
        config.setConnectionTimeout(60_000);
        try (KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build()) {
            for (int at = 1; at < args.length; at += 1) System.out.println(checked(client, args[at]));
        }
    }
}
