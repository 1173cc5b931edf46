/* ranks: 2
 * As `who`, linked with the drop-in library before the MPI instead of having it preloaded.
 */
#include "who.c"
