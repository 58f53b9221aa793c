// Package chunk keeps large values in a store of small pages, with one page as the
// switch between an old value and a new one.
//
// In come keys and values and a Pages, which is what the store can do; out come the
// value methods of store.Store. A value that fits into a page is its head. A larger one
// is cut into pages of a new generation, which are written first; then the head, which
// names the generation, the number of pages, the size and a checksum, is written where
// it has the version that was expected; then the pages of the old generation are
// removed. Who reads meanwhile gets the old value or the new one, whole.
//
// A process that dies in between leaves pages that no head names. Nobody sees them, and
// Sweep removes them once they are older than any write can last. The package never
// removes a page that a head names, and never repeats a write.
package chunk
