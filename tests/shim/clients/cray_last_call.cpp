// SPDX-License-Identifier: Apache-2.0
// A program that ends its plugin by a destructor of its own, when the thread's variables are gone: a failure has its words there, too.
// rows: few
#include <cstring>
#include <dl_comm.h>

#include "check.hpp"

namespace {

struct ended_last {
    ~ended_last() {
        CHECK(dl_comm_finalize() == 0);
        CHECK(dl_create_team(0, 2, 0) == -1);
        CHECK(std::strstr(dl_comm_last_error(), "the plugin is not started") != nullptr);
    }
} const ended;

}  // namespace

int main() {
    CHECK(dl_comm_init() == 0);
    CHECK(dl_comm_init() == -1);
    CHECK(std::strstr(dl_comm_last_error(), "the plugin is started already") != nullptr);
}
