#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | what it answers |
//! |---|---|
//! | [`random`] | numbers from an input's number |
//! | [`text`], [`binary`], [`model`], [`words`] | inputs of each kind |
//! | [`damage`] | what becomes of good bytes |
//! | [`subject`] | what takes which inputs, within which bound |
//! | [`memory`] | an allocator that counts |
//! | [`processor`] | processor time |
//! | [`campaign`] | many inputs, and how they ended |

pub mod binary;
pub mod campaign;
pub mod damage;
pub mod memory;
pub mod model;
pub mod processor;
pub mod random;
pub mod subject;
pub mod text;
pub mod words;
