//! The module of compiled kernels: loaded once per device, functions looked up by name.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use cust::error::CudaError;
use cust::module::Module as CustModule;
use cust_raw::{CUfunction, CUfunction_attribute, CUjit_option, CUresult};

use super::attributes::Attributes;
use super::driver::{check, from_cust};
use crate::device::embedded;
use crate::device::error::DeviceError;
use crate::device::loader::newer::cuFuncGetParamInfo;
use crate::device::loader::symbols::{cuFuncSetAttribute, cuModuleLoadDataEx, cuModuleUnload};
use crate::plan::limits::DeviceLimits;

const REMEDY_KERNELS: &str = "run `cargo xtask build-ptx`, which says what is missing, and build again; or use the device `cpu`";

/// Bytes of the driver's compiler log that are kept.
const LOG_BYTES: usize = 8192;

/// The call that has the driver compile.
const LOAD_PTX: &str = "cuModuleLoadDataEx (PTX)";

/// A loaded image.
pub(crate) struct Module {
    module: CustModule,
    arch: &'static str,
    origin: String,
    functions: Mutex<HashMap<&'static str, Arc<Function>>>,
}

/// A kernel in a loaded module. It may be used as long as the module's device is open.
#[derive(Debug)]
pub(crate) struct Function {
    raw: CUfunction,
    attributes: Attributes,
    /// Dynamic shared memory that launches may ask for so far.
    dynamic_shared_limit: Mutex<u32>,
}

// SAFETY: the driver's functions may be used from any thread.
unsafe impl Send for Function {}
// SAFETY: as above; the one attribute that is set is guarded by the mutex.
unsafe impl Sync for Function {}

impl Module {
    /// Loads the embedded image for a device into the current context.
    pub(super) fn load(limits: &DeviceLimits) -> Result<Module, DeviceError> {
        let capability = (
            limits.compute_capability.major,
            limits.compute_capability.minor,
        );
        let image = embedded::image_for(capability).ok_or_else(|| no_image(capability))?;
        let (module, form) = match image.cubin_for(capability) {
            Some(cubin) => (load_cubin(cubin)?, "machine code"),
            None => (load_ptx(image.ptx())?, "PTX, compiled by the driver"),
        };
        let origin = format!("{} ({form})", image.arch);
        tracing::debug!(%origin, "kernels loaded");
        Ok(Module {
            module,
            arch: image.arch,
            origin,
            functions: Mutex::default(),
        })
    }

    /// The image's architecture and form.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// The function of an entry. The module's context must be current.
    pub(crate) fn function(&self, name: &'static str) -> Result<Arc<Function>, DeviceError> {
        // Entries are inserted whole, so a panic elsewhere leaves the map usable.
        let mut functions = self
            .functions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = functions.get(name) {
            return Ok(Arc::clone(function));
        }
        let function = Arc::new(self.look_up(name)?);
        functions.insert(name, Arc::clone(&function));
        Ok(function)
    }

    fn look_up(&self, name: &str) -> Result<Function, DeviceError> {
        let function = self
            .module
            .get_function(name)
            .map_err(|error| match error {
                CudaError::NotFound => DeviceError::NoEntry {
                    kernel: name.to_owned(),
                    arch: self.arch.to_owned(),
                },
                other => from_cust("cuModuleGetFunction")(other),
            })?;
        Ok(Function {
            raw: function.to_raw(),
            attributes: Attributes::read(&function)?,
            dynamic_shared_limit: Mutex::new(0),
        })
    }
}

impl Function {
    /// The driver's handle.
    pub(crate) fn raw(&self) -> CUfunction {
        self.raw
    }

    /// What the function uses and allows.
    pub(crate) fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Allows launches with `bytes` of dynamic shared memory. The limit only ever grows, because other
    /// prepared launches of this function may need more.
    ///
    /// `bytes` has been compared with the device's limit; the context must be current.
    pub(crate) fn allow_dynamic_shared(&self, bytes: u32) -> Result<(), DeviceError> {
        let limit = &self.dynamic_shared_limit;
        // A plain number: a panic elsewhere cannot have spoilt it.
        let mut limit = limit.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes <= *limit {
            return Ok(());
        }
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let value = i32::try_from(bytes).unwrap_or(i32::MAX);
        // SAFETY: the function's module is loaded as long as its device is open.
        check("cuFuncSetAttribute", unsafe {
            cuFuncSetAttribute(self.raw, attribute, value)
        })?;
        *limit = bytes;
        Ok(())
    }

    /// Bytes of the kernel's parameter, if it has exactly one; `None` where the driver is older than
    /// CUDA 12.4 and does not say.
    pub(crate) fn parameter_bytes(&self) -> Option<usize> {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the pointers are writable, the function's module is loaded.
        let first = unsafe { cuFuncGetParamInfo(self.raw, 0, &raw mut offset, &raw mut size) };
        (first == CUresult::CUDA_SUCCESS).then_some(size)
    }
}

fn no_image((major, minor): (u32, u32)) -> DeviceError {
    let images = embedded::images();
    if images.is_empty() {
        let why = embedded::missing()
            .unwrap_or("no device code is embedded")
            .to_owned();
        return DeviceError::NoKernels {
            why,
            remedy: REMEDY_KERNELS,
        };
    }
    DeviceError::UnsupportedArch {
        device: format!("sm_{major}{minor}"),
        embedded: images
            .iter()
            .map(|image| image.arch)
            .collect::<Vec<_>>()
            .join(", "),
    }
}

fn load_cubin(cubin: &[u8]) -> Result<CustModule, DeviceError> {
    CustModule::from_cubin(cubin, &[]).map_err(from_cust("cuModuleLoadDataEx (machine code)"))
}

fn load_ptx(ptx: &str) -> Result<CustModule, DeviceError> {
    let Ok(text) = CString::new(ptx) else {
        return Err(from_cust(LOAD_PTX)(CudaError::InvalidPtx));
    };
    CustModule::from_ptx_cstr(&text, &[])
        .map_err(|error| explain(&text).unwrap_or(from_cust(LOAD_PTX)(error)))
}

/// Why the driver refuses a PTX text: its own code and the compiler's log, from compiling once more,
/// because `cust` offers neither. `None` if it does not refuse it again.
fn explain(ptx: &CStr) -> Option<DeviceError> {
    let (result, log) = compile_with_log(ptx);
    let mut error = check(LOAD_PTX, result).err()?;
    if let DeviceError::Driver { text, .. } = &mut error {
        text.push_str(": ");
        text.push_str(log.trim_end());
    }
    Some(error)
}

fn compile_with_log(ptx: &CStr) -> (CUresult, String) {
    let mut log = vec![0_u8; LOG_BYTES];
    let mut options = [
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    // The driver takes the size by value, in the place of a pointer.
    let mut values = [
        log.as_mut_ptr().cast::<c_char>().cast::<c_void>(),
        std::ptr::without_provenance_mut(LOG_BYTES),
    ];
    let mut module = std::ptr::null_mut();
    // SAFETY: the text ends in NUL; options and values are as many as said, and the log's buffer is as
    // long as said.
    let result = unsafe {
        cuModuleLoadDataEx(
            &raw mut module,
            ptx.as_ptr().cast(),
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    if result == CUresult::CUDA_SUCCESS {
        // SAFETY: the module was just loaded, and nothing of it is used.
        let _ = unsafe { cuModuleUnload(module) };
    }
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
    (result, String::from_utf8_lossy(&log[..end]).into_owned())
}
