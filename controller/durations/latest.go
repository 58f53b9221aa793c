package durations

// Latest keeps what belongs to keys, of which there may be ever new ones: those that were used last, a window of them
// at least and two at most.
type Latest[K comparable, V any] struct{ now, before map[K]*V }

// Get is what a key has; nil: nothing.
func (l *Latest[K, V]) Get(key K) *V {
	if v := l.now[key]; v != nil {
		return v
	}
	return l.before[key]
}

// Use is what a key has, a new V at first, and keeps it.
func (l *Latest[K, V]) Use(key K) *V {
	v := l.Get(key)
	if v == nil {
		v = new(V)
	}
	if l.now == nil || len(l.now) >= window {
		l.now, l.before = map[K]*V{}, l.now
	}
	l.now[key] = v
	return v
}
