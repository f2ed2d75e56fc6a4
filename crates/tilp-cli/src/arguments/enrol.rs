//! `tilp enrol`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Format;

const REQUEST: &str = "\
The private key is created in DIR and never leaves it. Copy DIR/request.json to the authority, run
`tilp enrol approve` there, and copy the resulting ca.pem and cert.pem back into DIR.

Environment:
  TILP_JOIN_TOKEN  the join token, if --token-file is not given

Exit codes: 0 done, 1 a file cannot be read or written, 2 bad usage or bad input";

/// `tilp enrol`.
#[derive(Args)]
pub(crate) struct Enrol {
    /// What to do.
    #[command(subcommand)]
    pub verb: EnrolVerb,
}

/// The owner of a certificate.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Whose {
    /// The terminal with this id
    #[arg(long, value_name = "ID")]
    pub terminal: Option<u32>,
    /// The evaluator
    #[arg(long)]
    pub evaluator: bool,
}

/// A selection of certificates.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Which {
    /// All certificates of the terminal with this id
    #[arg(long, value_name = "ID")]
    pub terminal: Option<u32>,
    /// All certificates of the evaluator
    #[arg(long)]
    pub evaluator: bool,
    /// The certificate with this serial number
    #[arg(long, value_name = "SERIAL")]
    pub serial: Option<String>,
}

/// Verbs of `tilp enrol`.
#[derive(Subcommand)]
pub(crate) enum EnrolVerb {
    /// Create an authority and the identity of its server
    Init {
        /// Folder of the authority
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Name or address of the server as terminals use it; may be repeated
        #[arg(long = "host", value_name = "HOST", default_values_t = ["localhost".to_owned(), "127.0.0.1".to_owned()])]
        hosts: Vec<String>,
        /// Validity of the server's certificate in days
        #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u64).range(1..=398))]
        days: u64,
        /// Give the server of an existing authority a new key and certificate, for the hosts given with
        /// --host
        #[arg(long, requires = "hosts")]
        renew_server: bool,
    },
    /// Print a one-time join token; it allows its holder to join under this identity
    #[command(override_usage = "tilp enrol token [OPTIONS] <DIR>")]
    Token {
        /// Folder of the authority
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// The new member.
        #[command(flatten)]
        whose: Whose,
        /// Validity of the token in hours
        #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u64).range(1..=720))]
        hours: u64,
    },
    /// On a device: create a private key and a request for a certificate
    #[command(after_help = REQUEST)]
    Request {
        /// Folder of the device
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// File with the join token; - for standard input
        #[arg(long, value_name = "FILE")]
        token_file: Option<PathBuf>,
        /// Request a new certificate with the present one instead of a token
        #[arg(long, conflicts_with = "token_file")]
        renew: bool,
    },
    /// Check a request and sign a certificate for it
    Approve {
        /// Folder of the authority
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// The request; - for standard input
        #[arg(value_name = "REQUEST")]
        request: PathBuf,
        /// Validity of the certificate in days
        #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u64).range(1..=398))]
        days: u64,
    },
    /// Add certificates to the deny list, which takes effect at once
    #[command(override_usage = "tilp enrol revoke [OPTIONS] <DIR>")]
    Revoke {
        /// Folder of the authority
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// A selection of certificates.
        #[command(flatten)]
        which: Which,
    },
    /// List certificates with serial number, validity and state, and unused tokens
    List {
        /// Folder of the authority
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// How to print the result
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
    },
}
