// Package prove shows by two tiny jobs what a cluster does with a tuning stanza.
//
// In come the account that submits and how an exporter is asked; out comes what
// happened: was the job with a faulty stanza refused, and with which words; was the
// good one marked; did the task prolog give it a variable; did an exporter measure it.
// The good job holds one core and 64 MB for some seconds. Both are cancelled at the
// end by a name that nobody else has, and the file of settings is removed, whatever
// happened in between. The package touches no job but its own two.
package prove
