//! Generates the messages and the service of the contract from `proto/testbed.proto`.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto/testbed.proto");
    let files = protox::compile(["proto/testbed.proto"], ["proto"])?;
    tonic_prost_build::configure().compile_fds(files)?;
    Ok(())
}
