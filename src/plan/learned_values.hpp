// SPDX-License-Identifier: Apache-2.0
// Written by bench/train_policy/train.py.
#pragma once

#include <array>

#include "plan/learned.hpp"

namespace glidepath::detail {

inline constexpr std::array<double, kLearnedValues> kBuiltInValues{
    -0.1584, 0.0797,  -0.0243, -0.0528, -0.0379, 0.3065,  -0.0479, -0.1032, 0.2034,  -0.0685,
    0.0013,  0.3099,  0.0052,  0.0936,  0.0287,  0.1337,  -0.102,  0.046,   -0.07,   0.0583,
    -0.0727, -0.0554, 0.0247,  0.2376,  0.0382,  -0.1983, -0.0109, 0.1393,  -0.0401, -0.032,
    -0.0556, -0.0347, -0.0395, 0.1068,  -0.0898, 0.0565,  -0.1098, 0.0,     1.0,     0.03,
    0.0,     0.1,     200.0,   64.0,    3.0,     300.0,   1.0};

}  // namespace glidepath::detail
