//! Instances of kernel templates that no table has: their source, for whoever compiles them.

/// One instance of a template of `gpu-kernels`, as Rust.
///
/// See [`qr::generated`](fn@super::qr::generated) for an example.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Template {
    /// The name of its entry, which no compiled kernel has.
    pub entry: String,
    /// The type of its arguments, with the lifetime `'a`.
    pub arguments: String,
    /// The body with its parameters.
    pub body: String,
}
