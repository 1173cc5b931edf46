/* ranks: 4
 * The exercise in whatever surroundings it is started.
 */
#include "exercise.h"

int main(int argc, char **argv) {
    check_begin(argc, argv);
    exercise();
    return check_end();
}
