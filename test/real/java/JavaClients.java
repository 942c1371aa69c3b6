import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.dsl.ExecWatch;
import io.fabric8.kubernetes.client.http.HttpClient;
import io.fabric8.kubernetes.client.jdkhttp.JdkHttpClientFactory;
import io.fabric8.kubernetes.client.okhttp.OkHttpClientFactory;
import io.fabric8.kubernetes.client.vertx.VertxHttpClientFactory;
import io.kubernetes.client.Exec;
import io.kubernetes.client.PortForward;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.File;
import java.io.InputStream;
import java.net.Socket;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** One of Java's clients against pods whose port 7 echoes: prints a line for each pod, a JSON object with a member for each check. */
class JavaClients {
    static final int FORWARDS = 20;
    static final int SIZE = 5 * 1024 * 1024;

    record Ended(byte[] out, byte[] err, int code) {}

    interface Client extends AutoCloseable {
        /** Without input where that is null. */
        Ended run(String pod, byte[] input, String script) throws Exception;

        /** How many connections to port 7 gave their bytes back. */
        int forwards(String pod) throws Exception;
    }

    record Fabric8(KubernetesClient client) implements Client {
        static Fabric8 of(HttpClient.Factory factory, File kubeconfig) {
            // Its threads start slowly on a busy machine.
            var config = Config.fromKubeconfig(kubeconfig);
            config.setRequestTimeout(60_000);
            config.setConnectionTimeout(60_000);
            return new Fabric8(new KubernetesClientBuilder().withHttpClientFactory(factory).withConfig(config).build());
        }

        public Ended run(String pod, byte[] input, String script) throws Exception {
            var out = new ByteArrayOutputStream();
            var err = new ByteArrayOutputStream();
            String[] command = {"sh", "-c", script};
            var container = client.pods().inNamespace("default").withName(pod).inContainer("main");
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

        public int forwards(String pod) throws Exception {
            int count = 0;
            try (var forward = client.pods().inNamespace("default").withName(pod).portForward(7)) {
                for (int number = 0; number < FORWARDS; number += 1) {
                    byte[] wanted = lines(number);
                    byte[] got = new byte[wanted.length];
                    try (var socket = new Socket("127.0.0.1", forward.getLocalPort())) {
                        socket.setSoTimeout(20_000);
                        socket.getOutputStream().write(wanted);
                        new DataInputStream(socket.getInputStream()).readFully(got);
                    }
                    if (Arrays.equals(wanted, got)) count += 1;
                }
            }
            return count;
        }

        public void close() {
            client.close();
        }
    }

    record Official(io.kubernetes.client.openapi.ApiClient client) implements Client {
        static Official of(File kubeconfig) throws Exception {
            var client = io.kubernetes.client.util.Config.fromConfig(kubeconfig.getPath());
            client.setReadTimeout(60_000);
            client.setConnectTimeout(60_000);
            return new Official(client);
        }

        public Ended run(String pod, byte[] input, String script) throws Exception {
            String[] command = {"sh", "-c", script};
            var process = new Exec(client).newExecutionBuilder("default", pod, command)
                .setContainer("main").setStdin(input != null).setStdout(true).setStderr(true).setTty(false).execute();
            // Both at once: a full pipe would hold the other up.
            var out = CompletableFuture.supplyAsync(() -> all(process.getInputStream()));
            var err = CompletableFuture.supplyAsync(() -> all(process.getErrorStream()));
            if (input != null) {
                process.getOutputStream().write(input);
                process.getOutputStream().flush();
            }
            if (!process.waitFor(60, TimeUnit.SECONDS)) throw new IllegalStateException("no exit code in 60 s");
            var ended = new Ended(out.get(20, TimeUnit.SECONDS), err.get(20, TimeUnit.SECONDS), process.exitValue());
            process.destroy();
            return ended;
        }

        public int forwards(String pod) throws Exception {
            int count = 0;
            for (int number = 0; number < FORWARDS; number += 1) {
                var forward = new PortForward(client).forward("default", pod, List.of(7));
                byte[] wanted = lines(number);
                byte[] got = new byte[wanted.length];
                try (var output = forward.getOutboundStream(7)) {
                    output.write(wanted);
                    output.flush();
                    new DataInputStream(forward.getInputStream(7)).readFully(got);
                }
                if (Arrays.equals(wanted, got)) count += 1;
            }
            return count;
        }

        public void close() {
            client.getHttpClient().dispatcher().executorService().shutdown();
            client.getHttpClient().connectionPool().evictAll();
        }
    }

    static byte[] all(InputStream stream) {
        try {
            return stream.readAllBytes();
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    static byte[] lines(int number) {
        return ("forward " + number + "\n").repeat(1000).getBytes();
    }

    static String checked(Client client, String pod) throws Exception {
        var failed = client.run(pod, null, "echo out; echo err >&2; exit 3");
        var got = client.run(pod, null, "seq 1000000000 1999999999 | head -c " + SIZE);
        byte[] data = new byte[SIZE];
        for (int at = 0; at < SIZE; at += 1) data[at] = (byte) at;
        // None of these clients can close its input, so the command reads as much as it is told.
        var digest = client.run(pod, data, "head -c " + SIZE + " | sha256sum | cut -c1-64");
        String wanted = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(data));
        return String.format(
            "{\"exit_code\":[%s,%s,%d],\"download\":[%d,%s,%d],\"upload\":%b,\"forwards\":%d}",
            quoted(failed.out), quoted(failed.err), failed.code,
            got.out.length, quoted(Arrays.copyOf(got.out, 11)), got.code,
            new String(digest.out).strip().equals(wanted), client.forwards(pod));
    }

    static String quoted(byte[] text) {
        return '"' + new String(text).replace("\n", "\\n") + '"';
    }

    public static void main(String[] args) throws Exception {
        var kubeconfig = new File(args[1]);
        try (Client client = switch (args[0]) {
            case "vertx" -> Fabric8.of(new VertxHttpClientFactory(), kubeconfig);
            case "okhttp" -> Fabric8.of(new OkHttpClientFactory(), kubeconfig);
            case "jdk" -> Fabric8.of(new JdkHttpClientFactory(), kubeconfig);
            case "client-java" -> Official.of(kubeconfig);
            default -> throw new IllegalArgumentException(args[0]);
        }) {
            for (int at = 2; at < args.length; at += 1) System.out.println(checked(client, args[at]));
        }
        // client-java has no way to close a forward: the threads of its sockets would keep the program alive.
        System.exit(0);
    }
}
