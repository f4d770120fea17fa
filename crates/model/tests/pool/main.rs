//! The pool from outside: each rule as a script, each profile by what it is known for, and everything at once as
//! properties of a simulated caller.

mod profiles;
mod properties;
mod rules;
mod script;
mod world;
