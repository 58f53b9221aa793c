// Package pack compresses a text in one stream, which no second thread can help.
//
// In come an input number and a seed that make the text; out comes, per epoch of
// several passes, what is left of its size (as loss) and the share of its blocks that
// expand to what they were (as acc). Each block's dictionary is that of the block
// before, so the work is serial by nature: it never uses more than one thread.
package pack
