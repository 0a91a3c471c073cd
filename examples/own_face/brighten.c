/* SPDX-License-Identifier: Apache-2.0 */
#include <ddl/shim/ddl.h>

#include <stdio.h>

int main(void) {
    ddl_communicator* world;
    unsigned char image[2][3] = {{100, 1, 0}, {20, 200, 255}};
    if (ddl_open_environment(&world) != DDL_OK || ddl_set_schedule(world, "chain") != DDL_OK ||
        ddl_run_allreduce(world, image, image, 2, ddl_find_element("pixel"), ddl_find_op("saturating_sum")) != DDL_OK) {
        fprintf(stderr, "%s\n", ddl_last_error());
        return 1;
    }
    if (ddl_get_rank(world) == 0) printf("%d %d %d\n", image[0][0], image[0][1], image[1][2]);
    return ddl_close(world);
}
