// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adapters.

use core::fmt;
use std::sync::Arc;

use crate::calls::{self, call, query_adapter_info};
use crate::device::Device;
use crate::handle::LocalHandle;
use crate::node::Node;
use crate::owned::{Kind, Owned};
use crate::raw::Argument;
use crate::uapi::*;
use crate::{Error, Result};

/// The system-wide name of an adapter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Luid {
    /// High half.
    pub high: i32,
    /// Low half.
    pub low: u32,
}

impl Luid {
    pub(crate) fn of(luid: LUID) -> Self {
        Self {
            high: luid.HighPart,
            low: luid.LowPart,
        }
    }

    pub(crate) fn raw(self) -> LUID {
        LUID {
            LowPart: self.low,
            HighPart: self.high,
        }
    }
}

#[cfg(feature = "raw")]
impl From<LUID> for Luid {
    fn from(luid: LUID) -> Self {
        Self::of(luid)
    }
}

#[cfg(feature = "raw")]
impl From<Luid> for LUID {
    fn from(luid: Luid) -> Self {
        luid.raw()
    }
}

/// HIGH:LOW in hexadecimal digits, as it is printed.
impl core::str::FromStr for Luid {
    type Err = ParseLuidError;

    fn from_str(text: &str) -> Result<Self, ParseLuidError> {
        let half = |digits: &str| {
            let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            match is_hex && (1..=8).contains(&digits.len()) {
                true => u32::from_str_radix(digits, 16).map_err(|_| ParseLuidError),
                false => Err(ParseLuidError),
            }
        };
        let (high, low) = text.split_once(':').ok_or(ParseLuidError)?;
        Ok(Self {
            // CAST: the same bits.
            high: half(high)? as i32,
            low: half(low)?,
        })
    }
}

/// Text that is no LUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseLuidError;

impl fmt::Display for ParseLuidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not HIGH:LOW in hexadecimal digits")
    }
}

impl core::error::Error for ParseLuidError {}

impl fmt::Display for Luid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}:{:08x}", self.high, self.low)
    }
}

impl fmt::Debug for Luid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An opened adapter. Cheap to clone; closed with the last clone and the last device made from it.
#[derive(Clone, Debug)]
pub struct Adapter(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    owned: Owned,
    luid: Luid,
}

impl Adapter {
    pub(crate) fn new(node: &Arc<Node>, handle: u32, luid: Luid) -> Self {
        let owned = Owned::new(node, handle, Kind::Adapter);
        Self(Arc::new(Inner { owned, luid }))
    }

    pub(crate) fn from_info(node: &Arc<Node>, info: &D3DKMT_ADAPTERINFO) -> Self {
        Self::new(node, info.hAdapter, Luid::of(info.AdapterLuid))
    }

    pub(crate) fn node(&self) -> &Arc<Node> {
        self.0.owned.node()
    }

    /// Resets the adapter, or the engine of one node, as if work there had hung: who has work there
    /// finds its device in error (D3DKMTEscape with D3DKMT_ESCAPE_TDRDBGCTRL). ACCESS_DENIED for
    /// callers without CAP_SYS_ADMIN.
    pub fn reset(&self, node: Option<u32>) -> Result<()> {
        let words = match node {
            None => vec![D3DKMT_TDRDBGCTRLTYPE_GPUTDR],
            Some(node) => vec![D3DKMT_TDRDBGCTRLTYPE_ENGINETDR, node],
        };
        let mut data: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.escape(D3DKMT_ESCAPE_TDRDBGCTRL, &mut data)
    }

    /// Gives data to the driver of the adapter, which answers in place (D3DKMTEscape with
    /// D3DKMT_ESCAPE_DRIVERPRIVATE).
    pub fn private_escape(&self, data: &mut [u8]) -> Result<()> {
        self.escape(D3DKMT_ESCAPE_DRIVERPRIVATE, data)
    }

    fn escape(&self, kind: D3DKMT_ESCAPETYPE, data: &mut [u8]) -> Result<()> {
        let mut arg = D3DKMT_ESCAPE::zeroed();
        arg.hAdapter = self.handle().0;
        arg.Type = kind;
        calls::resource::escape(self.node(), arg, data).map(|_| ())
    }

    /// The system-wide name of the adapter.
    pub fn luid(&self) -> Luid {
        self.0.luid
    }

    /// The local handle. Stays owned by this object.
    pub fn handle(&self) -> LocalHandle {
        self.0.owned.handle()
    }

    /// Closes the adapter and reports what the driver said. NOT closed, and `Ok`, while clones or
    /// devices still use it.
    pub fn close(self) -> Result<()> {
        Arc::into_inner(self.0).map_or(Ok(()), |inner| inner.owned.destroy())
    }

    /// Makes a device.
    pub fn create_device(&self) -> Result<Device> {
        Device::create(self)
    }

    /// Runs QueryAdapterInfo with a payload of raw bytes, which the driver reads and writes.
    ///
    /// Text in payloads is UTF-16. Type 41, whose payload holds addresses, is refused.
    pub fn query(&self, kind: u32, payload: &mut [u8]) -> Result<()> {
        query_adapter_info(self.node(), self.handle(), kind, payload).map(|_| ())
    }

    /// Reads the clocks of an engine node and of the CPU at one moment.
    pub fn clock_calibration(&self, node_ordinal: u32) -> Result<ClockCalibration> {
        let mut arg = D3DKMT_QUERYCLOCKCALIBRATION::zeroed();
        arg.hAdapter = self.handle().0;
        arg.NodeOrdinal = node_ordinal;
        call(self.node(), &mut arg)?;
        // The struct is packed, so its members are copied out, never borrowed.
        let data = arg.ClockData;
        Ok(ClockCalibration {
            gpu_frequency: data.GpuFrequency,
            gpu_clock_counter: data.GpuClockCounter,
            cpu_clock_counter: data.CpuClockCounter,
            flags: data.Flags,
        })
    }

    /// Asks whether a feature (`DXGK_FEATURE_ID`) is there.
    pub fn feature(&self, id: u32) -> Result<Feature> {
        Feature::query(self.node(), self.handle().0, id)
    }

    /// Bits of [`AdapterType`].
    pub fn adapter_type(&self) -> Result<AdapterType> {
        Ok(AdapterType::from_bits_retain(
            self.query_u32(KMTQAITYPE_ADAPTERTYPE)?,
        ))
    }

    /// The driver model version, for example 3200 for WDDM 3.2.
    pub fn driver_version(&self) -> Result<u32> {
        self.query_u32(KMTQAITYPE_DRIVERVERSION)
    }

    /// How many physical adapters are linked into this one.
    pub fn physical_adapter_count(&self) -> Result<u32> {
        self.query_u32(KMTQAITYPE_PHYSICALADAPTERCOUNT)
    }

    /// PCI-style identification of one physical adapter.
    pub fn device_ids(&self, physical_adapter: u32) -> Result<DeviceIds> {
        let mut payload = [0; 28];
        payload[..4].copy_from_slice(&physical_adapter.to_ne_bytes());
        self.query(KMTQAITYPE_PHYSICALADAPTERDEVICEIDS, &mut payload)?;
        let word = |index: usize| u32_at(&payload, index * 4);
        Ok(DeviceIds {
            vendor: word(1),
            device: word(2),
            sub_vendor: word(3),
            sub_system: word(4),
            revision: word(5),
            bus_type: word(6),
        })
    }

    /// The text that describes the adapter.
    pub fn description(&self) -> Result<String> {
        let mut payload = vec![0; 8192];
        self.query(KMTQAITYPE_DRIVER_DESCRIPTION, &mut payload)?;
        text(&payload)
    }

    /// Queries a type whose payload is one 32-bit word.
    pub fn query_u32(&self, kind: u32) -> Result<u32> {
        let mut payload = [0; 4];
        self.query(kind, &mut payload)?;
        Ok(u32::from_ne_bytes(payload))
    }
}

bitflags::bitflags! {
    /// What an adapter is and can do.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct AdapterType: u32 {
        /// It has engines that draw or compute.
        const RENDER_SUPPORTED = D3DKMT_ADAPTERTYPE_RenderSupported;
        /// It has outputs that show pictures.
        const DISPLAY_SUPPORTED = D3DKMT_ADAPTERTYPE_DisplaySupported;
        /// There is no hardware: the CPU does the work.
        const SOFTWARE_DEVICE = D3DKMT_ADAPTERTYPE_SoftwareDevice;
        /// Is a virtual adapter of a guest.
        const PARAVIRTUALIZED = D3DKMT_ADAPTERTYPE_Paravirtualized;
        /// Only computes.
        const COMPUTE_ONLY = D3DKMT_ADAPTERTYPE_ComputeOnly;
        const _ = !0;
    }
}

/// PCI-style identification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceIds {
    /// PCI number of the vendor.
    pub vendor: u32,
    /// PCI number of the device, as the vendor gave it.
    pub device: u32,
    /// Subsystem vendor.
    pub sub_vendor: u32,
    /// Subsystem.
    pub sub_system: u32,
    /// PCI revision of the device.
    pub revision: u32,
    /// What the device is connected by, as in `D3DKMT_DEVICE_IDS`.
    pub bus_type: u32,
}

/// Two clocks read at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockCalibration {
    /// Ticks of the GPU clock per second.
    pub gpu_frequency: u64,
    /// Ticks of the GPU clock at the moment of the call.
    pub gpu_clock_counter: u64,
    /// Ticks of the CPU clock at the same moment.
    pub cpu_clock_counter: u64,
    /// `DXGK_GPUCLOCKDATA_FLAGS`.
    pub flags: u32,
}

/// What is known about a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Feature {
    /// Version of the feature in use.
    pub version: u16,
    /// In use on this adapter.
    pub enabled: bool,
    /// The kernel knows the feature.
    pub known: bool,
    /// The driver supports it.
    pub supported_by_driver: bool,
    /// The system supports it.
    pub supported_on_current_config: bool,
}

impl Feature {
    /// Asks an adapter, or with 0 the system as a whole.
    pub(crate) fn query(node: &Node, adapter: u32, id: u32) -> Result<Self> {
        let mut arg = D3DKMT_ISFEATUREENABLED::zeroed();
        arg.hAdapter = adapter;
        arg.FeatureId = id;
        call(node, &mut arg)?;
        let has = |bit| u32::from(arg.Result.Value) & bit != 0;
        Ok(Self {
            version: arg.Result.Version,
            enabled: has(DXGK_ISFEATUREENABLED_RESULT_Enabled),
            known: has(DXGK_ISFEATUREENABLED_RESULT_KnownFeature),
            supported_by_driver: has(DXGK_ISFEATUREENABLED_RESULT_SupportedByDriver),
            supported_on_current_config: has(DXGK_ISFEATUREENABLED_RESULT_SupportedOnCurrentConfig),
        })
    }
}

/// The 32-bit word at a byte offset.
fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    let word = bytes[offset..].first_chunk().expect("inside the payload");
    u32::from_ne_bytes(*word)
}

/// UTF-16 text up to its terminator.
fn text(payload: &[u8]) -> Result<String> {
    let units = payload
        .chunks_exact(2)
        .map(|unit| u16::from_ne_bytes([unit[0], unit[1]]));
    let units: Vec<u16> = units.take_while(|&unit| unit != 0).collect();
    String::from_utf16(&units).map_err(|_| Error::Protocol("text is not UTF-16"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_at_the_terminator() {
        let bytes: Vec<u8> = "gpu\0rest"
            .encode_utf16()
            .flat_map(u16::to_ne_bytes)
            .collect();
        assert_eq!(text(&bytes).unwrap(), "gpu");
        assert_eq!(text(&[]).unwrap(), "");
        assert!(text(&0xd800u16.to_ne_bytes()).is_err());
    }

    #[test]
    fn words() {
        let bytes: Vec<u8> = [1u32, 2, 3]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        assert_eq!(u32_at(&bytes, 8), 3);
    }

    #[test]
    fn luid_is_written_high_first() {
        let luid = Luid {
            high: -1,
            low: 0xab,
        };
        assert_eq!(luid.to_string(), "ffffffff:000000ab");
        assert_eq!(luid.to_string().parse(), Ok(luid));
        assert_eq!(
            "0:a4c1".parse(),
            Ok(Luid {
                high: 0,
                low: 0xa4c1
            })
        );
        for bad in [
            "",
            "1",
            ":",
            "1:",
            "+1:2",
            "0x1:2",
            "1:2:3",
            "123456789:1",
            " 1:2",
        ] {
            assert_eq!(bad.parse::<Luid>(), Err(ParseLuidError), "{bad}");
        }
    }
}
