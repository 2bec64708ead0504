// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists the adapters: what each is called and what it can do.

use opendxg::{AdapterType, Dxg, Result};

fn main() -> Result<()> {
    let dxg = Dxg::open()?;
    for adapter in dxg.adapters()? {
        let kind = adapter.adapter_type()?;
        println!("{} {}", adapter.luid(), adapter.description()?);
        for (is, what) in [
            (AdapterType::RENDER_SUPPORTED, "renders"),
            (AdapterType::COMPUTE_ONLY, "only computes"),
            (AdapterType::DISPLAY_SUPPORTED, "displays"),
            (AdapterType::SOFTWARE_DEVICE, "is software"),
        ] {
            if kind.contains(is) {
                println!("  {what}");
            }
        }
    }
    Ok(())
}
