// SPDX-License-Identifier: Apache-2.0
// CUDA's narrow types, converted as its headers do on the host, have the bits of ours. Needs nvcc, and no GPU.
#include <ddl/kernel/cuda_elements.cuh>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>

namespace {

int wrong = 0;

template <class Theirs>
void converts_as_ours() {
    using ours = typename ddl::alias_of<Theirs>::type;
    const char* const name = ddl::element_name<ours>();
    for (std::uint64_t bits = 0; bits >> 32 == 0; bits += 977) {
        const float value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
        if (std::isnan(value)) continue;
        const ours theirs = std::bit_cast<ours>(Theirs{value});
        if (theirs.bits == ours{value}.bits || ++wrong > 9) continue;
        std::printf("%s of %a: %#x, ours is %#x\n", name, static_cast<double>(value), theirs.bits, ours{value}.bits);
    }
    for (std::uint32_t code = 0; code >> 8 * sizeof(ours) == 0; ++code) {
        const ours value = ours::from_bits(static_cast<decltype(ours::bits)>(code));
        const float theirs = static_cast<float>(std::bit_cast<Theirs>(value));
        if (theirs == static_cast<float>(value) || (std::isnan(theirs) && std::isnan(static_cast<float>(value))))
            continue;
        if (++wrong < 10)
            std::printf("%s %#x is %a, ours %a\n", name, code, double{theirs}, double{static_cast<float>(value)});
    }
}

}  // namespace

int main() {
    converts_as_ours<__half>();
    converts_as_ours<__nv_bfloat16>();
    converts_as_ours<__nv_fp8_e4m3>();
    converts_as_ours<__nv_fp8_e5m2>();
    std::printf("%d conversions have other bits\n", wrong);
    return wrong != 0;
}
