// Package stream moves large arrays through memory, as McCalpin's STREAM does.
//
// In comes an input number, that is the arrays' length; out comes, per epoch of
// many passes of copy, scale, add and triad, the largest relative error of the
// elements looked at (as loss) and the share of them that are exactly right (as
// acc), judged by the same arithmetic on single numbers. The arrays can be made
// again from those numbers, which is what a checkpoint holds.
package stream
