//! HTTPS: whom to trust, versions, client certificates, resumed sessions, and handshakes that fail.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use tempfile::TempDir;
use weir_net::tls::Authority;

use crate::support::{Openssl, Origin, Server, backends, run};

const HTTPS: &str = "--https 127.0.0.1:0";

/// An origin, and the file of the authority to trust.
fn origin(flags: &str) -> (Origin, PathBuf, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca.pem");
    let origin = Origin::start(&format!("{HTTPS} --ca-out {} {flags}", ca.display()));
    (origin, ca, dir)
}

/// Writes PEM files for `--cert` and `--key`, or `--cacert`.
fn write(dir: &TempDir, name: &str, pem: &str) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, pem).unwrap();
    path
}

#[test]
fn a_certificate_is_trusted_only_by_its_authority_or_by_nobodys_word() {
    let (origin, ca, _dir) = origin("");
    let (ca, url) = (ca.display(), origin.https_url("/"));
    for io in backends() {
        let load = format!("-n 20 -c 2 --io {io}");
        for flags in [
            format!("--cacert {ca}"),
            format!("--cacert {ca} --tls 1.2"),
            format!("--cacert {ca} --tls 1.3"),
            "-k".to_owned(),
        ] {
            let record = run(&format!("{load} {flags}"), &url).fine();
            assert_eq!(record["totals"]["ok"], 20, "{flags} {io}");
            assert_eq!(record["totals"]["tls_handshakes"], 2, "{flags} {io}");
            assert!(record["phases"]["tls"]["max"].as_f64().unwrap() > 0.0, "{flags} {io}");
        }
        let ended = run(&load, &url);
        assert_eq!(ended.status, 1, "{io}");
        assert_eq!(ended.record()["errors"], serde_json::json!({ "tls/untrusted": 20 }), "{io}");
        assert!(
            ended.stderr.contains("tls/untrusted") && ended.stderr.contains("--cacert"),
            "{}",
            ended.stderr
        );
    }
}

/// An authority, and a certificate of it that ended long ago.
fn expired() -> (String, String, String) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    params.not_before = date_time_ymd(2019, 1, 1);
    params.not_after = date_time_ymd(2020, 1, 1);
    let key = KeyPair::generate().unwrap();
    let cert = params.signed_by(&key, &authority).unwrap();
    (authority.pem(), cert.pem(), key.serialize_pem())
}

fn of_another_name() -> (String, String, String) {
    let authority = Authority::generate("test");
    let identity = authority.issue(&["other.example".to_owned()]).unwrap();
    (authority.cert_pem(), identity.chain_pem, identity.key_pem)
}

#[test]
fn a_certificate_that_is_over_or_for_another_name_is_not_trusted() {
    for (what, (ca, chain, key)) in [("expired", expired()), ("another name", of_another_name())] {
        let dir = tempfile::tempdir().unwrap();
        let [ca, chain, key] =
            [("ca", ca), ("chain", chain), ("key", key)].map(|(name, pem)| write(&dir, name, &pem));
        let origin = Origin::start(&format!("{HTTPS} --cert {} --key {}", chain.display(), key.display()));
        for io in backends() {
            let flags = format!("-n 4 -c 2 --io {io}");
            let ended = run(&format!("{flags} --cacert {}", ca.display()), &origin.https_url("/"));
            assert_eq!(ended.status, 1, "{what} {io}");
            assert_eq!(ended.record()["errors"], serde_json::json!({ "tls/untrusted": 4 }), "{what} {io}");
            run(&format!("{flags} -k"), &origin.https_url("/")).fine();
        }
    }
}

#[test]
fn client_certificates_are_sent_and_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::generate("clients");
    let identity = authority.issue(&["client".to_owned()]).unwrap();
    let client_ca = write(&dir, "client-ca", &authority.cert_pem());
    let (cert, key) = (write(&dir, "cert", &identity.chain_pem), write(&dir, "key", &identity.key_pem));
    let (origin, ca, _dir) = origin(&format!("--client-ca {}", client_ca.display()));
    for io in backends() {
        for version in ["1.2", "1.3"] {
            let flags = format!("-n 10 -c 2 --io {io} --tls {version} --cacert {}", ca.display());
            let own = format!("--cert {} --key {}", cert.display(), key.display());
            run(&format!("{flags} {own}"), &origin.https_url("/")).fine();
            let ended = run(&flags, &origin.https_url("/"));
            let record = ended.record();
            assert_eq!(ended.status, 1, "{version} {io}");
            assert_eq!(record["totals"]["errors"], 10, "{version} {io}");
            // In TLS 1.3 the client's part is over before the server has looked at its certificate.
            for error in record["errors"].as_object().unwrap().keys() {
                assert!(error.ends_with("/client_cert"), "{version} {io}: {}", record["errors"]);
            }
        }
    }
}

#[test]
fn sessions_are_resumed_unless_told_otherwise() {
    for io in backends() {
        for version in ["1.2", "1.3"] {
            let (origin, ca, _dir) = origin("");
            let flags = format!(
                "--profile per-request -n 20 -c 1 --io {io} --tls {version} --cacert {}",
                ca.display()
            );
            let record = run(&flags, &origin.https_url("/")).fine();
            assert_eq!(record["totals"]["tls_handshakes"], 20, "{version} {io}");
            assert_eq!(record["totals"]["tls_resumed"], 19, "{version} {io}");
            let handshakes = &origin.stats()["tls_handshakes"];
            assert_eq!(
                (&handshakes["full"], &handshakes["resumed"]),
                (&1.into(), &19.into()),
                "{version} {io}"
            );

            let record = run(&format!("{flags} --no-session-resumption"), &origin.https_url("/")).fine();
            assert_eq!(record["totals"]["tls_resumed"], 0, "{version} {io}");
            let handshakes = &origin.stats()["tls_handshakes"];
            assert_eq!(
                (&handshakes["full"], &handshakes["resumed"]),
                (&21.into(), &19.into()),
                "{version} {io}"
            );
        }
    }
}

#[test]
fn long_bodies_pass_through_tls_both_ways() {
    let (origin, ca, dir) = origin("");
    let body = dir.path().join("body");
    fs::write(&body, vec![7; 3_000_000]).unwrap();
    for io in backends() {
        let flags = format!("-n 4 -c 2 --io {io} --cacert {}", ca.display());
        let echo = format!("{flags} -m POST -D {}", body.display());
        let totals = &run(&echo, &origin.https_url("/echo")).fine()["totals"];
        assert!(totals["bytes_in"].as_u64().unwrap() > 12_000_000, "{io}: {totals}");
        let record = run(&flags, &origin.https_url("/bytes/2m?chunked=1")).fine();
        assert!(record["totals"]["bytes_in"].as_u64().unwrap() > 8_000_000, "{io}");
        assert_eq!(record["totals"]["conns_opened"], 2, "{io}");
    }
}

#[test]
fn only_versions_that_both_sides_speak_meet() {
    let dir = tempfile::tempdir().unwrap();
    for (server, client, meets) in [
        ("-tls1_2", "1.2", true),
        ("-tls1_2", "1.3", false),
        ("-tls1_3", "1.3", true),
        ("-tls1_3", "1.2", false),
    ] {
        let openssl = Openssl::start(&dir, server);
        for io in backends() {
            let ended = run(&format!("-n 2 -c 1 -k --tls {client} --io {io}"), &openssl.url());
            let name = format!("{server} and {client} with {io}");
            match meets {
                true => assert_eq!(ended.fine()["totals"]["ok"], 2, "{name}"),
                false => assert_eq!(ended.record()["errors"], serde_json::json!({ "tls/tls": 2 }), "{name}"),
            }
        }
    }
}

#[test]
fn what_is_no_tls_is_named() {
    let (origin, _ca, _dir) = origin("");
    let plain = format!("https://{}/", origin.addr());
    let closes = Server::start(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let silent = Server::start(|mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let alert = Server::start(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        // Fatal, handshake_failure.
        let _ = stream.write_all(&[21, 3, 3, 0, 2, 2, 40]);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let tls_of = |server: &Server| server.url("/").replace("http:", "https:");
    let tls_port = origin.https_url("/").replace("https:", "http:");
    for io in backends() {
        for (what, url, error) in [
            ("HTTP where TLS is expected", plain.clone(), "tls/tls"),
            ("a server that closes", tls_of(&closes), "tls/closed"),
            ("a server that says nothing", tls_of(&silent), "tls/timeout"),
            ("a server that refuses", tls_of(&alert), "tls/tls"),
            ("TLS where HTTP is expected", tls_port.clone(), "receive/malformed"),
        ] {
            // As many as there are connections: more would wait for a dial that is not theirs.
            let ended = run(&format!("-k -n 2 -c 2 -t 300ms --io {io}"), &url);
            assert_eq!(ended.record()["errors"], serde_json::json!({ error: 2 }), "{what} with {io}");
            assert_eq!(ended.status, 1, "{what} with {io}");
        }
        let ended = run(&format!("-k -n 4 -c 2 --connect-timeout 100ms --io {io}"), &tls_of(&silent));
        assert_eq!(ended.record()["errors"], serde_json::json!({ "tls/timeout": 4 }), "{io}");
    }
}

#[test]
fn files_that_are_no_certificates_stop_the_run_before_it_begins() {
    let dir = tempfile::tempdir().unwrap();
    let no_pem = write(&dir, "no.pem", "nothing of the kind");
    let missing = Path::new("/nowhere/ca.pem");
    for path in [no_pem.as_path(), missing] {
        let ended = run(&format!("-n 1 --cacert {}", path.display()), "https://127.0.0.1:1/");
        assert_eq!(ended.status, 1, "{}", ended.stderr);
        assert!(ended.stderr.contains("\nhint: "), "{}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
}
