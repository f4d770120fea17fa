//! HTTPS beside HTTP, on every event loop.

mod support;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

use support::{loopback, on_each_backend, start};
use weir_net::tls::{ClientOptions, ClientTls};
use weir_net::{Backend, Endpoint, Event, Net, NetConfig};
use weir_origin::{Origin, OriginConfig, TlsHandshakes};

fn secure(backend: Backend) -> Origin {
    start(backend, |config| config.https = vec![loopback()])
}

fn trusting(origin: &Origin) -> Arc<ClientTls> {
    let options = ClientOptions {
        verify: true,
        authorities_pem: Some(origin.authority_pem().expect("it made one").into()),
        identity_pem: None,
        resumption: true,
        tls12: true,
        tls13: true,
        alpn: vec![b"http/1.1".to_vec()],
    };
    ClientTls::new(&options).unwrap()
}

/// One request on a connection of its own: the bytes of the response.
fn fetch(net: &mut Net, origin: &Origin, tls: &Arc<ClientTls>, target: &str, bytes: usize) -> Vec<u8> {
    let conn = net.connect(&Endpoint::Tcp(origin.https_addrs()[0]), None, Some((tls, "localhost")));
    let mut got = Vec::new();
    loop {
        net.wait(None).unwrap();
        while let Some(event) = net.next_event() {
            match event {
                Event::Secured(..) => net.send(conn, support::get(target).as_bytes()),
                Event::Received(_) => got.extend_from_slice(net.data()),
                Event::Failed(_, e) => panic!("{e:?}"),
                _ => {}
            }
        }
        if let Some(head) = got.windows(4).position(|window| window == b"\r\n\r\n")
            && got.len() == head + 4 + bytes
        {
            net.close(conn);
            return got;
        }
    }
}

#[test]
fn the_same_origin_answers_with_and_without_tls() {
    on_each_backend(|backend| {
        let origin = secure(backend);
        let tls = trusting(&origin);
        let mut net = Net::new(NetConfig { backend: Some(backend) }).unwrap();
        let response = fetch(&mut net, &origin, &tls, "/", 12);
        assert!(response.ends_with(b"\r\n\r\nweir origin\n"));
        fetch(&mut net, &origin, &tls, "/bytes/3m", 3_000_000);
        assert_eq!(support::dial(&origin).get("/").status, 200);
        assert_eq!(origin.stats().responses, BTreeMap::from([(200, 3)]));
    });
}

#[test]
fn handshakes_are_counted_full_or_resumed() {
    on_each_backend(|backend| {
        let origin = secure(backend);
        let tls = trusting(&origin);
        let mut net = Net::new(NetConfig { backend: Some(backend) }).unwrap();
        for _ in 0..3 {
            fetch(&mut net, &origin, &tls, "/", 12);
        }
        assert_eq!(origin.stats().tls_handshakes, TlsHandshakes { full: 1, resumed: 2 });
    });
}

#[test]
fn the_authority_is_written_for_clients_to_trust() {
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca.pem");
    on_each_backend(|backend| {
        let origin = start(backend, |config| {
            config.https = vec![loopback()];
            config.tls.ca_out = Some(ca.clone());
        });
        let curl = |host: &str, trust: bool| {
            let url = format!("https://{host}:{}/bytes/100000", origin.https_addrs()[0].port());
            let mut command = Command::new("curl");
            command.args([
                "--silent",
                "--max-time",
                "20",
                "--output",
                "/dev/null",
                "--write-out",
                "%{http_code} %{size_download}",
            ]);
            if trust {
                command.arg("--cacert").arg(&ca);
            }
            let output = command.arg(url).output().expect("curl is installed");
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(curl("localhost", true), "200 100000");
        assert_eq!(curl("127.0.0.1", true), "200 100000");
        assert_eq!(curl("localhost", false), "000 0");
    });
}

#[test]
fn wrong_files_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let junk = dir.path().join("junk.pem");
    std::fs::write(&junk, "not a certificate").unwrap();
    let check = |change: &dyn Fn(&mut OriginConfig), message: &str| {
        let mut config = OriginConfig { https: vec![loopback()], ..OriginConfig::default() };
        change(&mut config);
        let error = Origin::start(&config).err().expect(message);
        assert!(error.message.starts_with(message), "{}", error.message);
    };
    let nowhere = dir.path().join("nowhere/ca.pem");
    check(
        &|c| c.tls.files = Some((nowhere.clone(), junk.clone())),
        &format!("tls: cannot read {}: ", nowhere.display()),
    );
    check(&|c| c.tls.ca_out = Some(nowhere.clone()), &format!("tls: cannot write {}: ", nowhere.display()));
    check(&|c| c.tls.files = Some((junk.clone(), junk.clone())), "tls: ");
    check(&|c| c.tls.client_ca = Some(junk.clone()), "tls: ");
}
