//! The command against real servers on loopback, everything as a process of its own: nginx, `weir origin`, curl, and
//! servers of a few lines written for one test.
//!
//! Asserts counts, order, shapes and ratios. Times are asserted only as lower bounds, or with so much room that a busy
//! machine does not matter.

mod support;

mod curl;
mod faults;
mod limits;
mod load;
mod nginx;
mod pools;
mod requests;
mod stop;
mod tls;
