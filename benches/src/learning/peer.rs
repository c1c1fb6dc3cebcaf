//! The objective of logistic regression on the two products of a library.

use anyhow::Result;
use warpfuse::device::{Buffer, Device, DeviceError};
use warpfuse::learning::{Objective, Value};
use warpfuse::matrix::Element;
use warpfuse::ops::design::{DesignColumns, DesignVectors, Ridge};
use warpfuse::ops::objective::{Evaluation, Intercept, Loss, RowsOut, row_losses};
use warpfuse::ops::{Number, OpError};
use warpfuse::plan::fused::Product;

use crate::gpu::Gpu;
use crate::peers::{Method, Peer};

/// Everything but the products is what the estimator does.
pub struct PeerObjective<T: Number> {
    device: Device,
    product: Box<dyn Peer<T>>,
    method: Method,
    vectors: DesignVectors<T>,
    targets: Buffer<T>,
    weights: Buffer<T>,
    ridge: Ridge,
    accepted: Buffer<T>,
    trial: Buffer<T>,
    /// What the library said when a product failed.
    failed: Option<anyhow::Error>,
}

impl<T: Number> PeerObjective<T> {
    /// With weights 1/m, as of a mean.
    pub fn new(
        gpu: &Gpu,
        (product, method): (Box<dyn Peer<T>>, Method),
        targets: &[T],
        cols: usize,
        l2: f64,
    ) -> Result<Self> {
        let device = gpu.device.clone();
        let design = DesignColumns {
            cols,
            means: None,
            scales: None,
            intercept: false,
            classes: 1,
        };
        let rows = targets.len();
        let weights = vec![<T as Element>::from_f64(1.0 / rows as f64); rows];
        Ok(PeerObjective {
            vectors: DesignVectors::new(&device, &design)?,
            targets: device.upload(targets)?,
            weights: device.upload(&weights)?,
            accepted: device.zeros(rows)?,
            trial: device.zeros(rows)?,
            ridge: Ridge {
                coefficients: l2,
                intercept: 0.0,
            },
            device,
            product,
            method,
            failed: None,
        })
    }

    /// `outcome`, with the library's own error where a product failed.
    pub fn told<R>(&mut self, outcome: Result<R, OpError>) -> Result<R> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(outcome?),
        }
    }

    fn product(&mut self, product: Product) -> Result<(), OpError> {
        self.product.run(self.method, product).map_err(|error| {
            self.failed = Some(error);
            OpError::Device(DeviceError::Unsupported {
                what: "multiply",
                device: self.device.to_string(),
                why: "another library's product failed",
            })
        })
    }

    /// From θ in `vectors` to Xᵀ·slopes in `vectors`.
    fn pass(&mut self, evaluates: bool) -> Result<(), OpError> {
        let vectors = &mut self.vectors;
        self.product.input(Product::Forward).copy_from(&vectors.y)?;
        self.product(Product::Forward)?;
        let (products, slopes) = self.product.between();
        let evaluation = Evaluation {
            loss: if evaluates {
                Loss::Logistic
            } else {
                Loss::Squared
            },
            target: evaluates.then_some(&self.targets),
            weights: Some(if evaluates {
                &self.weights
            } else {
                &self.accepted
            }),
            offset: None,
            intercept: Intercept::Absent,
            scale: <T as Element>::from_f64(1.0),
        };
        let out = RowsOut {
            sums: &mut self.vectors.sums,
            residual: Some(slopes),
            curvature: evaluates.then_some(&mut self.trial),
        };
        row_losses(&evaluation, products, out)?;
        self.product(Product::Transposed)?;
        let output = self.product.output(Product::Transposed);
        Ok(self.vectors.raw.copy_from(output)?)
    }
}

impl<T: Number> Objective<T> for PeerObjective<T> {
    fn device(&self) -> &Device {
        &self.device
    }

    fn len(&self) -> usize {
        self.vectors.raw.len()
    }

    fn evaluate(&mut self, theta: &Buffer<T>, gradient: &mut Buffer<T>) -> Result<Value, OpError> {
        self.vectors.enter(theta)?;
        self.pass(true)?;
        self.vectors.leave(theta, self.ridge, gradient)?;
        Ok(Value::of(self.vectors.figures()?))
    }

    fn accept(&mut self) {
        std::mem::swap(&mut self.accepted, &mut self.trial);
    }

    fn hessian_vector(
        &mut self,
        direction: &Buffer<T>,
        product: &mut Buffer<T>,
        _: Option<&Buffer<f64>>,
    ) -> Result<(), OpError> {
        self.vectors.enter(direction)?;
        self.pass(false)?;
        self.vectors.leave_product(direction, self.ridge, product)
    }
}
