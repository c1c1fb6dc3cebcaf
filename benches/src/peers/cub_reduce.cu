// Times cub::DeviceReduce::Sum over as many floats as the arguments say: one line "length microseconds" each.
//
// As the library's own benchmarks: warm-up, then the median of 31 samples, each the mean of enough calls in a row
// to last about 2 ms, between two events.
#include <cub/cub.cuh>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                   \
    if (cudaError_t error = (call)) {                                                 \
        std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));           \
        return 1;                                                                     \
    }

__global__ void fill(float* x, size_t len) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < len; i += size_t(gridDim.x) * blockDim.x) {
        x[i] = float(i % 1024) / 1024 - 0.5f;
    }
}

int main(int count, char** arguments) {
    for (int argument = 1; argument < count; ++argument) {
        size_t len = std::strtoull(arguments[argument], nullptr, 10), bytes = 0;
        float *x = nullptr, *out = nullptr;
        void* scratch = nullptr;
        CHECK(cudaMalloc(&x, len * sizeof(float)));
        CHECK(cudaMalloc(&out, sizeof(float)));
        fill<<<1024, 256>>>(x, len);
        CHECK(cub::DeviceReduce::Sum(nullptr, bytes, x, out, len));
        CHECK(cudaMalloc(&scratch, bytes));
        cudaEvent_t start, stop;
        CHECK(cudaEventCreate(&start));
        CHECK(cudaEventCreate(&stop));
        auto per_call = [&](int calls) {
            cudaEventRecord(start);
            for (int call = 0; call < calls; ++call) {
                cub::DeviceReduce::Sum(scratch, bytes, x, out, len);
            }
            cudaEventRecord(stop);
            cudaEventSynchronize(stop);
            float milliseconds = 0;
            cudaEventElapsedTime(&milliseconds, start, stop);
            return 1e3f * milliseconds / calls;
        };
        per_call(3);
        int calls = std::min(64, std::max(1, int(2000 / per_call(1))));
        std::vector<float> samples(31);
        for (float& sample : samples) {
            sample = per_call(calls);
        }
        CHECK(cudaGetLastError());
        std::sort(samples.begin(), samples.end());
        std::printf("%zu %.3f\n", len, samples[samples.size() / 2]);
        CHECK(cudaFree(x));
        CHECK(cudaFree(out));
        CHECK(cudaFree(scratch));
    }
}
