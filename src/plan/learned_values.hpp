// SPDX-License-Identifier: Apache-2.0
// Written by bench/train_policy/train.py.
#pragma once

#include <array>

#include "plan/learned.hpp"

namespace glidepath::detail {

inline constexpr std::array<double, kLearnedValues> kBuiltInValues{
    -0.1584, 0.0797, -0.0243, -0.0528, -0.0379, 0.3065,  -0.0479, -0.1032, 0.2034, -0.0685, 0.0013,
    0.3099,  0.0052, 0.0936,  0.0287,  0.1337,  -0.102,  0.0,     0.0,     0.0,    0.0,     0.0,
    0.0,     0.0,    0.0,     0.0,     0.0,     0.0,     0.0,     0.0,     0.0,    0.0,     0.0,
    0.0,     0.0,    0.0,     0.0,     0.0248,  0.3912,  -0.256,  -0.2678, 0.3793, 0.1214,  0.4377,
    0.2009,  0.3073, -0.4417, -0.1455, 0.2483,  -0.0259, 0.2644,  0.2058,  0.0205, -0.4949, 0.2352,
    -0.0578, 0.0,    1.0,     0.03,    0.0,     0.1,     200.0,   64.0,    3.0,    300.0,   1.0};

}  // namespace glidepath::detail
