//! kube-rs by rustls against pods whose port 7 echoes: prints a line for each pod, a JSON object with a member for each check.

use k8s_openapi::api::core::v1::Pod;
use kube::api::AttachParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use std::error::Error;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

const FORWARDS: usize = 20;
const SIZE: usize = 5 * 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(60);

type Failable<T> = Result<T, Box<dyn Error>>;

struct Ended {
    out: Vec<u8>,
    err: Vec<u8>,
    code: i32,
}

async fn run(pods: &Api<Pod>, name: &str, input: Option<&[u8]>, script: &str) -> Failable<Ended> {
    let params = AttachParams::default().container("main").stdin(input.is_some());
    let mut process = pods.exec(name, ["sh", "-c", script], &params).await?;
    let status = process.take_status().ok_or("no status")?;
    let mut stdout = process.stdout().ok_or("no stdout")?;
    let mut stderr = process.stderr().ok_or("no stderr")?;
    let stdin = process.stdin();
    let send = async {
        if let (Some(mut stdin), Some(input)) = (stdin, input) {
            stdin.write_all(input).await?;
            stdin.shutdown().await?;
        }
        Ok::<(), std::io::Error>(())
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let ended = async {
        let (sent, read, failed, status) =
            tokio::join!(send, stdout.read_to_end(&mut out), stderr.read_to_end(&mut err), status);
        sent?;
        read?;
        failed?;
        status.ok_or_else(|| std::io::Error::other("no status came"))
    };
    let status = timeout(PATIENCE, ended).await??;
    let causes = status.details.and_then(|details| details.causes).unwrap_or_default();
    let code = match causes.first() {
        Some(cause) => cause.message.as_deref().unwrap_or("").parse()?,
        None => 0,
    };
    Ok(Ended { out, err, code })
}

async fn echoes(pods: &Api<Pod>, name: &str, number: usize) -> Failable<bool> {
    let wanted = format!("forward {number}\n").repeat(1000).into_bytes();
    let mut forward = pods.portforward(name, &[7]).await?;
    let mut stream = forward.take_stream(7).ok_or("no stream")?;
    let mut got = vec![0; wanted.len()];
    stream.write_all(&wanted).await?;
    timeout(PATIENCE, stream.read_exact(&mut got)).await??;
    forward.abort();
    Ok(got == wanted)
}

async fn checked(pods: &Api<Pod>, name: &str) -> Failable<String> {
    let failed = run(pods, name, None, "echo out; echo err >&2; exit 3").await?;
    let got = run(pods, name, None, &format!("seq 1000000000 1999999999 | head -c {SIZE}")).await?;
    let data: Vec<u8> = (0..SIZE).map(|at| b"0123456789abcdef"[at % 16]).collect();
    // To the end of its input, and back.
    let returned = run(pods, name, Some(&data), "cat").await?;
    let mut forwards = 0;
    for number in 0..FORWARDS {
        forwards += usize::from(echoes(pods, name, number).await?);
    }
    Ok(format!(
        r#"{{"exit_code":[{:?},{:?},{}],"download":[{},{:?},{}],"upload":{},"forwards":{}}}"#,
        String::from_utf8(failed.out)?,
        String::from_utf8(failed.err)?,
        failed.code,
        got.out.len(),
        String::from_utf8_lossy(&got.out[..got.out.len().min(11)]),
        got.code,
        returned.out == data && returned.code == 0,
        forwards,
    ))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Failable<()> {
    let mut arguments = std::env::args().skip(1);
    let file = Kubeconfig::read_from(arguments.next().ok_or("which kubeconfig?")?)?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    let pods: Api<Pod> = Api::namespaced(Client::try_from(config)?, "default");
    for name in arguments {
        println!("{}", checked(&pods, &name).await?);
    }
    Ok(())
}
