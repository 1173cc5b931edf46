/* needs: tool
 * A library for graphics processors, as far as pario can tell: it has the function that says where
 * memory is.
 */
int cuPointerGetAttribute(void *data, int attribute, unsigned long long pointer);

int cuPointerGetAttribute(void *data, int attribute, unsigned long long pointer) {
    (void)data;
    (void)attribute;
    (void)pointer;
    return 1;
}
