/* SHA-256 of rows that are put together of cells' texts: the fast twin of likeness.data.source.row_texts and hashlib.
   It is optional. Python makes the same hashes where it was not built, and a test compares both. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#define HAS_INSTRUCTIONS
#endif

enum { BLOCK = 64, SHORT = 16, HASH = 32, TILE = 64, LONG = 1 << 10 };

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
    0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
    0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
    0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2};
static const uint32_t START[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static inline uint32_t turn(uint32_t word, int bits) { return (word >> bits) | (word << (32 - bits)); }

static void compress_one(uint32_t state[8], const uint8_t *data, size_t blocks) {
    for (; blocks--; data += BLOCK) {
        uint32_t w[64], s[8];
        for (int i = 0; i < 16; i++)
            w[i] = (uint32_t)data[4 * i] << 24 | data[4 * i + 1] << 16 | data[4 * i + 2] << 8 | data[4 * i + 3];
        for (int i = 16; i < 64; i++)
            w[i] = w[i - 16] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ (w[i - 15] >> 3)) + w[i - 7] +
                   (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ (w[i - 2] >> 10));
        memcpy(s, state, sizeof s);
        for (int i = 0; i < 64; i++) {
            uint32_t one = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) +
                           ((s[4] & s[5]) ^ (~s[4] & s[6])) + K[i] + w[i];
            uint32_t two = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) +
                           ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
            memmove(s + 1, s, 7 * sizeof *s);
            s[4] += one;
            s[0] = one + two;
        }
        for (int i = 0; i < 8; i++) state[i] += s[i];
    }
}

static void compress(uint32_t (*state)[8], uint8_t *const *data, size_t blocks, int lanes) {
    for (int t = 0; t < lanes; t++) compress_one(state[t], data[t], blocks);
}

#ifdef HAS_INSTRUCTIONS
/* One text, or two of as many blocks side by side: the second fills the time that the first one waits. */
__attribute__((target("sha,sse4.1,ssse3"), always_inline)) static inline void compress_lanes(
    uint32_t (*state)[8], uint8_t *const *data, size_t blocks, int lanes) {
    const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0bULL, 0x0405060700010203ULL);
    __m128i abef[2], cdgh[2], m[2][4], first[2], second[2];
    for (int t = 0; t < lanes; t++) {
        const __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state[t]), 0xB1);
        const __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state[t] + 4)), 0x1B);
        abef[t] = _mm_alignr_epi8(low, high, 8);
        cdgh[t] = _mm_blend_epi16(high, low, 0xF0);
    }
    for (size_t block = 0; block < blocks; block++) {
        for (int t = 0; t < lanes; t++) {
            first[t] = abef[t];
            second[t] = cdgh[t];
            for (int i = 0; i < 4; i++) {
                const uint8_t *at = data[t] + BLOCK * block + 16 * i;
                m[t][i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)at), order);
            }
        }
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
#pragma GCC unroll 2
            for (int t = 0; t < lanes; t++) {
                const __m128i words = _mm_add_epi32(m[t][i & 3], _mm_loadu_si128((const __m128i *)(K + 4 * i)));
                cdgh[t] = _mm_sha256rnds2_epu32(cdgh[t], abef[t], words);
                abef[t] = _mm_sha256rnds2_epu32(abef[t], cdgh[t], _mm_shuffle_epi32(words, 0x0E));
                if (i < 12) {
                    __m128i next = _mm_sha256msg1_epu32(m[t][i & 3], m[t][(i + 1) & 3]);
                    next = _mm_add_epi32(next, _mm_alignr_epi8(m[t][(i + 3) & 3], m[t][(i + 2) & 3], 4));
                    m[t][i & 3] = _mm_sha256msg2_epu32(next, m[t][(i + 3) & 3]);
                }
            }
        for (int t = 0; t < lanes; t++) {
            abef[t] = _mm_add_epi32(abef[t], first[t]);
            cdgh[t] = _mm_add_epi32(cdgh[t], second[t]);
        }
    }
    for (int t = 0; t < lanes; t++) {
        const __m128i low = _mm_shuffle_epi32(abef[t], 0x1B), high = _mm_shuffle_epi32(cdgh[t], 0xB1);
        _mm_storeu_si128((__m128i *)state[t], _mm_blend_epi16(low, high, 0xF0));
        _mm_storeu_si128((__m128i *)(state[t] + 4), _mm_alignr_epi8(high, low, 8));
    }
}

__attribute__((target("sha,sse4.1,ssse3"))) static void compress_fast(uint32_t (*state)[8], uint8_t *const *data,
                                                                      size_t blocks, int lanes) {
    if (lanes == 2)
        compress_lanes(state, data, blocks, 2);
    else
        compress_lanes(state, data, blocks, 1);
}

static int has_sha(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & (1u << 29))) return 0;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_1);
}
#endif

typedef void (*Compress)(uint32_t (*)[8], uint8_t *const *, size_t, int);

/* A column: which of its texts each row has, where each text begins, and the texts one after the other. Or numbers. */
typedef struct {
    Py_buffer indices, starts, content, numbers;
    int64_t texts, longest;
    Py_ssize_t width;
} Column;

enum { DECIMALS = 4, LONGEST_NUMBER = 24 };

/* The whole number that a number of at most four decimals and fifteen digits is, times 10^4; 0 where it is none. */
static inline int scale_number(double number, double *scaled) {
    const double even = 6755399441055744.0; /* 1.5 * 2^52: a smaller number beside it loses what is behind the point */
    *scaled = number * 1e4 + even - even;
    return fabs(*scaled) < 1e15 && *scaled / 1e4 == number;
}

static inline int write_digits(uint64_t digits, uint8_t *end) {
    int count = 0;
    do {
        end[-++count] = (uint8_t)('0' + digits % 10);
    } while (digits /= 10);
    return count;
}

/* The cell of a number, as Numeric.exact_texts writes it: how many bytes; 0 where it has more digits. */
static int write_cell(double number, uint8_t *cell) {
    double scaled;
    uint8_t text[2 * LONGEST_NUMBER], *const end = text + LONGEST_NUMBER;
    if (isnan(number)) {
        *cell = '-';
        return 1;
    }
    if (!scale_number(number, &scaled)) return 0;
    uint64_t digits = (uint64_t)fabs(scaled);
    int exponent = digits ? -DECIMALS : 0, count;
    for (; digits && digits % 10 == 0; exponent++) digits /= 10;
    count = write_digits((uint64_t)abs(exponent), end);
    if (exponent < 0) end[-++count] = '-';
    end[-++count] = 'e';
    count += write_digits(digits, end - count);
    if (scaled < 0) end[-++count] = '-';
    int length = write_digits((uint64_t)count, cell + 2);
    if (length == 1) cell[0] = cell[1];
    cell[length] = ':';
    memcpy(cell + length + 1, end - count, LONGEST_NUMBER); /* the rest is written over */
    return length + 1 + count;
}

/* The place of a row's text; the last one where it is less than 0. */
static inline int64_t place_of(const Column *column, Py_ssize_t row) {
    const void *places = column->indices.buf;
    int64_t place = column->width == 1   ? ((const int8_t *)places)[row]
                    : column->width == 2 ? ((const int16_t *)places)[row]
                                         : ((const int32_t *)places)[row];
    return place < 0 ? column->texts - 1 : place;
}

static int take_column(Column *column, PyObject *parts, Py_ssize_t rows) {
    PyObject *indices = NULL, *starts = NULL, *content = NULL;
    if (!PyTuple_Check(parts)) {
        column->longest = LONGEST_NUMBER;
        if (PyObject_GetBuffer(parts, &column->numbers, PyBUF_SIMPLE)) return -1;
        if (column->numbers.len >= 8 * rows) return 0;
        PyErr_SetString(PyExc_ValueError, "a row names a number that its column does not have");
        return -1;
    }
    if (!PyArg_ParseTuple(parts, "OOO", &indices, &starts, &content)) return -1;
    if (PyObject_GetBuffer(starts, &column->starts, PyBUF_SIMPLE) ||
        PyObject_GetBuffer(content, &column->content, PyBUF_SIMPLE) ||
        PyObject_GetBuffer(indices, &column->indices, PyBUF_ND))
        return -1;
    column->width = column->indices.itemsize;
    const int64_t *start = column->starts.buf;
    column->texts = column->starts.len / 8 - 1;
    int right = column->texts >= 0 && start[0] >= 0;
    for (int64_t i = 0; right && i < column->texts; i++) {
        int64_t length = start[i + 1] - start[i];
        right = length >= 0 && start[i + 1] <= column->content.len;
        column->longest = length > column->longest ? length : column->longest;
    }
    right = right && (column->width == 1 || column->width == 2 || column->width == 4);
    right = right && column->indices.len >= column->width * rows && (column->texts > 0 || rows == 0);
    for (Py_ssize_t i = 0; right && i < rows; i++) right = place_of(column, i) < column->texts;
    if (!right) PyErr_SetString(PyExc_ValueError, "a row names a text that its column does not have");
    return right ? 0 : -1;
}

/* Append a column's cells to the texts of some rows; 0 where a number has too many digits. */
static int append_cells(const Column *column, Py_ssize_t first, int rows, uint8_t *text, int64_t longest,
                        int64_t *lengths) {
    const double *numbers = column->numbers.buf;
    const uint8_t *content = column->content.buf;
    const int64_t *starts = column->starts.buf, end = column->content.len;
    for (int i = 0; i < rows; i++, text += longest) {
        if (numbers != NULL) {
            const int written = write_cell(numbers[first + i], text + lengths[i]);
            if (!written) return 0;
            lengths[i] += written;
            continue;
        }
        const int64_t place = place_of(column, first + i), at = starts[place], size = starts[place + 1] - at;
        if (size <= SHORT && at + SHORT <= end)
            memcpy(text + lengths[i], content + at, SHORT); /* of a fixed length, which is faster; the rest is written over */
        else
            memcpy(text + lengths[i], content + at, (size_t)size);
        lengths[i] += size;
    }
    return 1;
}

static inline void write_word(uint32_t word, uint8_t *at) {
    at[0] = (uint8_t)(word >> 24);
    at[1] = (uint8_t)(word >> 16);
    at[2] = (uint8_t)(word >> 8);
    at[3] = (uint8_t)word;
}

/* End a text as SHA-256 wants it; how many blocks it has. */
static int64_t pad_text(uint8_t *text, int64_t length) {
    const int64_t whole = (length + 9 + BLOCK - 1) / BLOCK * BLOCK;
    memset(text + length, 0, BLOCK + 8); /* of a fixed length, which is faster */
    text[length] = 0x80;
    write_word((uint32_t)((uint64_t)length >> 29), text + whole - 8);
    write_word((uint32_t)((uint64_t)length << 3), text + whole - 4);
    return whole / BLOCK;
}

static void hash_texts(uint8_t *const *texts, uint8_t *const *hashes, int64_t blocks, Compress used, int lanes) {
    uint32_t state[2][8];
    for (int t = 0; t < lanes; t++) memcpy(state[t], START, sizeof START);
    used(state, texts, (size_t)blocks, lanes);
    for (int t = 0; t < lanes; t++)
        for (int i = 0; i < 8; i++) write_word(state[t][i], hashes[t] + 4 * i);
}

/* Hash some texts, two of as many blocks at once. */
static void hash_tile(uint8_t *text, int64_t longest, const int64_t *lengths, int rows, Compress used, uint8_t *hash) {
    int waits[LONG / BLOCK + 1] = {0}; /* one more than the row of so many blocks that waits for another */
    uint8_t *texts[2], *hashes[2];
    for (int i = 0; i < rows; i++) {
        const int64_t blocks = pad_text(text + longest * i, lengths[i]);
        int *const other = blocks <= LONG / BLOCK ? waits + blocks : NULL;
        texts[0] = text + longest * i;
        hashes[0] = hash + HASH * i;
        if (other != NULL && *other == 0) {
            *other = i + 1;
            continue;
        }
        if (other != NULL) {
            texts[1] = text + longest * (*other - 1);
            hashes[1] = hash + HASH * (*other - 1);
            *other = 0;
        }
        hash_texts(texts, hashes, blocks, used, other == NULL ? 1 : 2);
    }
    for (int blocks = 0; blocks <= LONG / BLOCK; blocks++) {
        if (waits[blocks] == 0) continue;
        texts[0] = text + longest * (waits[blocks] - 1);
        hashes[0] = hash + HASH * (waits[blocks] - 1);
        hash_texts(texts, hashes, blocks, used, 1);
    }
}

static PyObject *hash_rows(PyObject *self, PyObject *arguments) {
    PyObject *given, *hashes = NULL;
    Py_ssize_t rows;
    int portable = 0;
    if (!PyArg_ParseTuple(arguments, "O!n|p", &PyList_Type, &given, &rows, &portable)) return NULL;
    Compress used = compress;
#ifdef HAS_INSTRUCTIONS
    if (!portable && has_sha()) used = compress_fast;
#endif
    const Py_ssize_t count = PyList_Size(given);
    Column *columns = PyMem_Calloc((size_t)count + 1, sizeof *columns);
    uint8_t *text = NULL;
    int64_t longest = 2 * BLOCK;
    Py_ssize_t taken = 0, done = count;
    if (columns == NULL || rows < 0) goto end;
    for (; taken < count && !PyErr_Occurred(); taken++) {
        if (take_column(columns + taken, PyList_GetItem(given, taken), rows) == 0) longest += columns[taken].longest;
    }
    if (PyErr_Occurred()) goto end;
    const int step = longest <= LONG ? TILE : 1;
    text = PyMem_Malloc((size_t)longest * (size_t)step);
    hashes = PyBytes_FromStringAndSize(NULL, rows * HASH);
    if (text == NULL || hashes == NULL) {
        Py_CLEAR(hashes);
        goto end;
    }
    uint8_t *hash = (uint8_t *)PyBytes_AsString(hashes);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t row = 0; row < rows && done == count; row += step) {
        const int some = rows - row < step ? (int)(rows - row) : step;
        int64_t lengths[TILE] = {0};
        for (Py_ssize_t j = 0; j < count && done == count; j++)
            if (!append_cells(columns + j, row, some, text, longest, lengths)) done = j;
        if (done == count) hash_tile(text, longest, lengths, some, used, hash + HASH * row);
    }
    Py_END_ALLOW_THREADS
    if (done < count) {
        Py_DECREF(hashes);
        hashes = PyLong_FromSsize_t(done);
    }
end:
    for (Py_ssize_t j = 0; j < taken; j++) {
        Py_buffer *buffers[] = {&columns[j].indices, &columns[j].starts, &columns[j].content, &columns[j].numbers};
        for (int i = 0; i < 4; i++)
            if (buffers[i]->obj != NULL) PyBuffer_Release(buffers[i]);
    }
    PyMem_Free(columns);
    PyMem_Free(text);
    return hashes != NULL || PyErr_Occurred() ? hashes : PyErr_NoMemory();
}

/* The sum of the bytes of a number's text, as Arrow writes it, each by one more and times the weight of its place. */
static int add_text(double number, const uint64_t *weights, uint64_t *sum) {
    double scaled;
    uint8_t text[LONGEST_NUMBER], *const end = text + LONGEST_NUMBER;
    if (!scale_number(number, &scaled) || fabs(scaled) >= 1e14 || (scaled == 0 && signbit(number))) return 0;
    uint64_t digits = (uint64_t)fabs(scaled), part = digits % 10000;
    int count = 0;
    if (part) {
        int places = DECIMALS;
        for (; part % 10 == 0; places--) part /= 10;
        while (places--) {
            end[-++count] = (uint8_t)('0' + part % 10);
            part /= 10;
        }
        end[-++count] = '.';
    }
    count += write_digits(digits / 10000, end - count);
    if (scaled < 0) end[-++count] = '-';
    *sum = 0;
    for (int i = 0; i < count; i++) *sum += ((uint64_t)end[i - count] + 1) * weights[i];
    return 1;
}

static PyObject *add_texts(PyObject *self, PyObject *arguments) {
    PyObject *sums = NULL;
    Py_buffer numbers, weights;
    int done = 1;
    if (!PyArg_ParseTuple(arguments, "y*y*", &numbers, &weights)) return NULL;
    if (weights.len < 8 * LONGEST_NUMBER)
        PyErr_SetString(PyExc_ValueError, "a place of a text has no weight");
    else if ((sums = PyBytes_FromStringAndSize(NULL, numbers.len / 8 * 8)) != NULL) {
        uint64_t *sum = (uint64_t *)PyBytes_AsString(sums);
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i < numbers.len / 8 && done; i++)
            done = add_text(((const double *)numbers.buf)[i], weights.buf, sum + i);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&numbers);
    PyBuffer_Release(&weights);
    if (done) return sums;
    Py_DECREF(sums);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"add_texts", add_texts, METH_VARARGS, "Sums of the texts of numbers, as sha256_rows.pyi says."},
    {"hash_rows", hash_rows, METH_VARARGS, "SHA-256 of rows, as sha256_rows.pyi says."},
    {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "sha256_rows", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_sha256_rows(void) { return PyModule_Create(&module); }
