// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace compare {

/// A tensor's place in a buffer that holds them all, one behind the other.
struct tensor {
    std::size_t first;
    std::size_t count;
};

class tensor_list {
public:
    void add(std::size_t count) {
        all_.push_back({total_, count});
        total_ += count;
    }
    const std::vector<tensor>& all() const noexcept { return all_; }
    std::size_t total() const noexcept { return total_; }

private:
    std::vector<tensor> all_;
    std::size_t total_ = 0;
};

/// The 161 gradients of ResNet-50: 53 convolutions, each with the two vectors of its batch norm, and the classifier.
inline tensor_list resnet50() {
    tensor_list model;
    const auto convolution = [&](std::size_t in, std::size_t out, std::size_t width) {
        model.add(out * in * width * width);
        model.add(out);
        model.add(out);
    };
    convolution(3, 64, 7);
    std::size_t in = 64;
    for (const auto& [blocks, inner] : {std::pair{3, 64}, {4, 128}, {6, 256}, {3, 512}})
        for (int block = 0; block < blocks; ++block) {
            const auto width = static_cast<std::size_t>(inner);
            convolution(in, width, 1);
            convolution(width, width, 3);
            convolution(width, 4 * width, 1);
            if (block == 0) convolution(in, 4 * width, 1);  // the shortcut changes its shape, too
            in = 4 * width;
        }
    model.add(1000 * in);
    model.add(1000);
    return model;
}

/// The 148 gradients of GPT-2 124M: the embeddings, 12 layers of 12 tensors, and the last norm.
inline tensor_list gpt2() {
    constexpr std::size_t width = 768;
    tensor_list model;
    const auto norm = [&] { model.add(width), model.add(width); };
    const auto linear = [&](std::size_t in, std::size_t out) { model.add(in * out), model.add(out); };
    model.add(50257 * width);
    model.add(1024 * width);
    for (int layer = 0; layer < 12; ++layer) {
        norm();
        linear(width, 3 * width);
        linear(width, width);
        norm();
        linear(width, 4 * width);
        linear(4 * width, width);
    }
    norm();
    return model;
}

/// No tensors for any other name.
inline tensor_list tensors_of(std::string_view model) {
    return model == "resnet50" ? resnet50() : model == "gpt2" ? gpt2() : tensor_list{};
}

}  // namespace compare
