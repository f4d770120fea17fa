//! Sockets with the options that matter.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::Duration;

use socket2::{Domain, SockAddr, SockRef, Socket, Type};

/// Where to connect to, or to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// io_uring wants blocking sockets (it polls by itself); readiness wants the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Blocking,
    Nonblocking,
}

impl Endpoint {
    pub(crate) fn sockaddr(&self) -> io::Result<SockAddr> {
        match self {
            Endpoint::Tcp(addr) => Ok(SockAddr::from(*addr)),
            Endpoint::Unix(path) => SockAddr::unix(path),
        }
    }

    fn domain(&self) -> Domain {
        match self {
            Endpoint::Tcp(addr) => Domain::for_address(*addr),
            Endpoint::Unix(_) => Domain::UNIX,
        }
    }
}

fn stream(to: &Endpoint, mode: Mode) -> io::Result<Socket> {
    let kind = match mode {
        Mode::Blocking => Type::STREAM,
        Mode::Nonblocking => Type::STREAM.nonblocking(),
    };
    Socket::new(to.domain(), kind.cloexec(), None)
}

/// A socket that is ready to connect: no Nagle, and bound to `from` if that is given.
pub(crate) fn client(to: &Endpoint, from: Option<IpAddr>, mode: Mode) -> io::Result<Socket> {
    let socket = stream(to, mode)?;
    if let Endpoint::Tcp(_) = to {
        socket.set_tcp_nodelay(true)?;
        if let Some(ip) = from {
            // The port is chosen in connect(2), when the other address is known: many more pairs are possible.
            set_bind_address_no_port(&socket)?;
            socket.bind(&SocketAddr::new(ip, 0).into())?;
        }
    }
    Ok(socket)
}

fn set_bind_address_no_port(socket: &Socket) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let on: libc::c_int = 1;
    // SAFETY: `on` outlives the call and its size is given.
    let rc = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Accepted sockets inherit TCP_NODELAY from it.
pub(crate) fn listener(at: &Endpoint, mode: Mode) -> io::Result<Socket> {
    let socket = stream(at, mode)?;
    match at {
        Endpoint::Tcp(_) => {
            socket.set_reuse_address(true)?;
            socket.set_reuse_port(true)?;
            socket.set_tcp_nodelay(true)?;
        }
        Endpoint::Unix(path) => remove_stale_socket(path)?,
    }
    socket.bind(&at.sockaddr()?)?;
    socket.listen(4096)?;
    Ok(socket)
}

/// A socket file that nobody listens on is in the way of bind(2).
fn remove_stale_socket(path: &std::path::Path) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// The next close sends RST.
pub(crate) fn close_abruptly(fd: RawFd) {
    // SAFETY: the caller owns `fd`, which is open until it closes it.
    let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
    // Fails only for sockets that are gone already, which need no RST.
    let _ = SockRef::from(&fd).set_linger(Some(Duration::ZERO));
}

/// FIN after what was written.
pub(crate) fn shutdown_write(fd: RawFd) {
    // SAFETY: shutdown(2) takes no memory; a bad descriptor is an error, which means it is gone already.
    unsafe { libc::shutdown(fd, libc::SHUT_WR) };
}

pub(crate) fn close(fd: RawFd) {
    // SAFETY: the caller owns `fd` and does not use it again.
    unsafe { libc::close(fd) };
}

/// The error that a connect ended with.
pub(crate) fn take_error(fd: RawFd) -> io::Result<()> {
    // SAFETY: the caller owns `fd`, which is open.
    let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
    match SockRef::from(&fd).take_error()? {
        None => Ok(()),
        Some(e) => Err(e),
    }
}
