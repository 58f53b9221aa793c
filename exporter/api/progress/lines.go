package progress

// maxLine bounds what is kept of one line. The rest of a longer one is skipped:
// no progress line is that long, and a binary file must not fill the memory.
const maxLine = 64 << 10

// lines cuts a stream into lines. Carriage returns end a line too, since progress
// bars rewrite theirs.
type lines struct {
	partial []byte
	over    bool // the present line was longer than maxLine
}

// feed calls f for each line that is finished by p. The bytes are only valid
// during the call.
func (l *lines) feed(p []byte, f func(line []byte)) {
	start := 0
	for i, b := range p {
		if b != '\n' && b != '\r' {
			continue
		}
		l.keep(p[start:i])
		if !l.over && len(l.partial) > 0 {
			f(l.partial)
		}
		l.reset()
		start = i + 1
	}
	l.keep(p[start:])
}

func (l *lines) keep(p []byte) {
	if l.over || len(l.partial)+len(p) > maxLine {
		l.over, l.partial = true, l.partial[:0]
		return
	}
	l.partial = append(l.partial, p...)
}

func (l *lines) reset() { l.partial, l.over = l.partial[:0], false }
