/* Cells of numbers, and counts of cells: the fast twin of what likeness.features.cells and likeness.release.sums.counts
   do with numpy. It is optional. Both give the same numbers, and a test compares them. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

enum { INTERVALS = 1 << 12, TILE = 1 << 10 };

static PyObject *find_cells(PyObject *self, PyObject *arguments) {
    Py_buffer values, edges, firsts;
    PyObject *cells = NULL;
    if (!PyArg_ParseTuple(arguments, "y*y*y*", &values, &edges, &firsts)) return NULL;
    const double *value = values.buf, *edge = edges.buf;
    const int64_t *first = firsts.buf;
    const int64_t count = values.len / 8, last = edges.len / 8 - 1;
    int right = firsts.len == 8 * INTERVALS && last >= 0 && last <= UINT16_MAX && edge[last] != edge[last];
    for (int i = 0; right && i < INTERVALS; i++) right = first[i] >= 0 && first[i] <= last;
    if (!right)
        PyErr_SetString(PyExc_ValueError, "edges end with one that no value reaches, and each interval begins at one");
    else if ((cells = PyBytes_FromStringAndSize(NULL, 2 * count)) != NULL) {
        uint16_t *cell = (uint16_t *)PyBytes_AsString(cells);
        Py_BEGIN_ALLOW_THREADS
        for (int64_t i = 0; i < count; i++) {
            const double place = value[i] * INTERVALS;
            int64_t at = first[!(place >= 1) ? 0 : place >= INTERVALS ? INTERVALS - 1 : (int)place];
            while (value[i] >= edge[at]) at++;
            cell[i] = (uint16_t)at;
        }
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&values);
    PyBuffer_Release(&edges);
    PyBuffer_Release(&firsts);
    return cells;
}

static int count_rows(uint64_t *counts, uint64_t size, Py_ssize_t rows, const Py_buffer *columns, const uint32_t *sizes,
                      Py_ssize_t width) {
    uint32_t number[TILE];
    for (Py_ssize_t start = 0; start < rows; start += TILE) {
        const int tile = rows - start < TILE ? (int)(rows - start) : TILE;
        for (int i = 0; i < tile; i++) number[i] = 0;
        for (Py_ssize_t j = 0; j < width; j++) {
            const uint16_t *cell = (const uint16_t *)columns[j].buf + start;
            const uint32_t of = sizes[j];
            for (int i = 0; i < tile; i++) number[i] = number[i] * of + cell[i];
        }
        for (int i = 0; i < tile; i++) {
            if (number[i] >= size) return 0;
            counts[number[i]]++;
        }
    }
    return 1;
}

static PyObject *count_cells(PyObject *self, PyObject *arguments) {
    PyObject *cells, *widths;
    Py_buffer counts;
    if (!PyArg_ParseTuple(arguments, "O!O!w*", &PyTuple_Type, &cells, &PyTuple_Type, &widths, &counts)) return NULL;
    const Py_ssize_t width = PyTuple_Size(cells);
    Py_buffer *columns = PyMem_Calloc((size_t)width + 1, sizeof *columns);
    uint32_t *sizes = PyMem_Calloc((size_t)width + 1, sizeof *sizes);
    Py_ssize_t taken = 0, rows = 0;
    uint64_t every = 1;
    int right = columns != NULL && sizes != NULL && width > 0 && PyTuple_Size(widths) == width;
    for (; right && taken < width; taken++) {
        if (PyObject_GetBuffer(PyTuple_GetItem(cells, taken), columns + taken, PyBUF_SIMPLE)) break;
        sizes[taken] = (uint32_t)PyLong_AsUnsignedLong(PyTuple_GetItem(widths, taken));
        every *= sizes[taken];
        right = !PyErr_Occurred() && (taken == 0 || columns[taken].len == columns->len) && every <= UINT32_MAX;
    }
    if (right && taken == width) {
        rows = columns->len / 2;
        Py_BEGIN_ALLOW_THREADS
        right = every * 8 == (uint64_t)counts.len && count_rows(counts.buf, every, rows, columns, sizes, width);
        Py_END_ALLOW_THREADS
    }
    if (!right && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a row is in no cell of a table");
    for (Py_ssize_t j = 0; j < taken; j++) PyBuffer_Release(columns + j);
    PyBuffer_Release(&counts);
    PyMem_Free(columns);
    PyMem_Free(sizes);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"find_cells", find_cells, METH_VARARGS, "Cells of numbers, as cell_counts.pyi says."},
    {"count_cells", count_cells, METH_VARARGS, "Counts of cells, as cell_counts.pyi says."},
    {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "cell_counts", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_cell_counts(void) { return PyModule_Create(&module); }
