//! The compiled kernels of a device: each is loaded when it is first requested, and kept.

use std::collections::HashMap;
use std::env;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::{Arc, Mutex};

use cust::error::CudaError;
use cust::module::{Module, ModuleJitOption};
use cust_raw::{CUfunction, CUfunction_attribute, CUjit_option, CUresult};

use super::attributes::Attributes;
use super::driver::{check, from_cust};
use crate::device::embedded::{self, Form, Image, Kernel};
use crate::device::error::DeviceError;
use crate::device::loader::newer::cuFuncGetParamInfo;
use crate::device::loader::symbols::{cuFuncSetAttribute, cuModuleLoadDataEx, cuModuleUnload};
use crate::parallel::locked;
use crate::plan::limits::DeviceLimits;

const REMEDY_KERNELS: &str = "run `cargo xtask build-ptx`, which says what is missing, and build again; or use the device `cpu`";

/// Bytes of the driver's compiler log that are kept.
const LOG_BYTES: usize = 8192;

/// The call that has the driver compile.
const LOAD_PTX: &str = "cuModuleLoadDataEx (PTX)";

/// If set, the driver compiles all kernels, whatever machine code there is: to see what a device of a later generation does.
const FORCE_PTX: &str = "WARPFUSE_FORCE_PTX";

/// The kernels that a device runs.
pub(crate) struct Kernels {
    image: &'static Image,
    form: Form,
    origin: String,
    loaded: Mutex<HashMap<&'static str, Loaded>>,
}

/// A kernel on the device. The function may be used as long as the module is there.
struct Loaded {
    function: Arc<Function>,
    _module: Module,
}

/// A loaded kernel. It may be used as long as its device is open.
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

impl Kernels {
    /// Finds the embedded image for a device, whose context is current, and loads its smallest kernel: a driver that refuses one
    /// refuses all.
    pub(super) fn find(limits: &DeviceLimits) -> Result<Kernels, DeviceError> {
        let capability = (
            limits.compute_capability.major,
            limits.compute_capability.minor,
        );
        let forced = env::var_os(FORCE_PTX).is_some();
        let image = if forced {
            embedded::ptx_for(capability)
        } else {
            embedded::image_for(capability)
        };
        let image = image.ok_or_else(|| no_image(capability))?;
        let form = image.form_for(capability).filter(|_| !forced);
        let form = form.unwrap_or(Form::Ptx);
        let told = match form {
            Form::MachineCode => "machine code",
            Form::Ptx => "PTX, each kernel compiled by the driver when it is first used",
        };
        let kernels = Kernels {
            image,
            form,
            origin: format!("{} ({told})", image.arch),
            loaded: Mutex::default(),
        };
        tracing::debug!(origin = kernels.origin, "kernels found");
        let smallest = image.kernels().iter().min_by_key(|one| one.bytes());
        smallest.map_or(Ok(()), |kernel| kernels.function(kernel.entry).map(drop))?;
        Ok(kernels)
    }

    /// The image's architecture and form.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// Whether the driver has to compile them.
    pub(crate) fn are_compiled_by_driver(&self) -> bool {
        self.form == Form::Ptx
    }

    /// Whether the image holds a kernel of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.image.kernel(name).is_some()
    }

    /// Registers of a thread as the assembler counted them, which is what the driver is held to where it compiles; `None` if the
    /// image does not say.
    pub(crate) fn registers(&self, name: &str) -> Option<u32> {
        let resource = self.image.kernel(name)?.resource()?;
        Some(resource.registers)
    }

    /// The function of an entry, loaded if need be. The device's context must be current.
    pub(crate) fn function(&self, name: &'static str) -> Result<Arc<Function>, DeviceError> {
        // Entries are inserted whole, so a panic elsewhere leaves the map usable.
        let mut loaded = locked(&self.loaded);
        if let Some(loaded) = loaded.get(name) {
            return Ok(Arc::clone(&loaded.function));
        }
        let kernel = self.image.kernel(name);
        let kernel = kernel.ok_or_else(|| self.no_entry(name))?;
        let (module, function) = self.load(kernel)?;
        let function = Arc::new(function);
        let held = Loaded {
            function: Arc::clone(&function),
            _module: module,
        };
        loaded.insert(name, held);
        Ok(function)
    }

    /// Loads a kernel that the image does not have.
    pub(super) fn add(&self, entry: &'static str, ptx: String) -> Result<(), DeviceError> {
        let module = load_ptx(ptx.into_bytes(), None)?;
        let function = Arc::new(self.function_of(&module, entry)?);
        let held = Loaded {
            function,
            _module: module,
        };
        // What was loaded before stays: launches may be under way.
        locked(&self.loaded).entry(entry).or_insert(held);
        Ok(())
    }

    fn load(&self, kernel: &Kernel) -> Result<(Module, Function), DeviceError> {
        let file = self.image.unpacked(kernel, self.form);
        let file = file.ok_or_else(|| self.no_entry(kernel.entry))?;
        let module = match self.form {
            Form::MachineCode => Module::from_cubin(&file, &[])
                .map_err(from_cust("cuModuleLoadDataEx (machine code)"))?,
            Form::Ptx => {
                tracing::info!(kernel = kernel.entry, "compiled by the driver");
                load_ptx(file, self.registers(kernel.entry))?
            }
        };
        let function = self.function_of(&module, kernel.entry)?;
        Ok((module, function))
    }

    fn function_of(&self, module: &Module, entry: &str) -> Result<Function, DeviceError> {
        let function = module.get_function(entry).map_err(|error| match error {
            CudaError::NotFound => self.no_entry(entry),
            other => from_cust("cuModuleGetFunction")(other),
        })?;
        Ok(Function {
            raw: function.to_raw(),
            attributes: Attributes::read(&function)?,
            dynamic_shared_limit: Mutex::new(0),
        })
    }

    fn no_entry(&self, name: &str) -> DeviceError {
        DeviceError::NoEntry {
            kernel: name.to_owned(),
            arch: self.image.arch.to_owned(),
        }
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
        let mut limit = locked(limit);
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

/// Has the driver compile, with as many registers as launches are planned with.
fn load_ptx(ptx: Vec<u8>, registers: Option<u32>) -> Result<Module, DeviceError> {
    let Ok(text) = CString::new(ptx) else {
        return Err(from_cust(LOAD_PTX)(CudaError::InvalidPtx));
    };
    let most = registers.map(ModuleJitOption::MaxRegisters);
    Module::from_ptx_cstr(&text, most.as_slice())
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
