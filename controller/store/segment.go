package store

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/gob"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"pitchpipe/controller/tuning"
)

// entry is one change of the state, in a slot of the log.
type entry struct {
	Seq      uint64
	Writer   string            // of the process
	Changes  map[string][]byte // packed; empty: deleted
	Blob     *blob             // of the changes, where they are too large for a slot
	Segments []segment         // what the state before this entry lies in; empty: as the entry before says

	raw []byte // as it is stored
}

// segment has the values that were written by the entries after From and up to To.
type segment struct {
	From, To uint64
	Size     int // of its values
	Blob     blob
}

// blob is a value of any size, in parts that fit into the store. It never changes.
type blob struct {
	ID    string
	Parts int
	Sum   [sha256.Size]byte
}

func (b blob) prefix() string { return "blob/" + b.ID + "/" }

func (r *Replica) writeBlob(ctx context.Context, v any) (blob, error) {
	raw, err := encode(v)
	if err != nil {
		return blob{}, err
	}
	parts := slices.Collect(slices.Chunk(raw, r.kv.Limit()))
	b := blob{ID: rand.Text(), Parts: len(parts), Sum: sha256.Sum256(raw)}
	err = each(ctx, len(parts), func(ctx context.Context, i int) error {
		_, err := r.kv.Put(ctx, fmt.Sprintf("%s%d", b.prefix(), i), parts[i], 0)
		return err
	})
	if err != nil {
		return blob{}, fmt.Errorf("write a blob: %w", err)
	}
	return b, nil
}

func (r *Replica) readBlob(ctx context.Context, b blob, v any) error {
	if b.Parts < 0 || b.Parts > 1<<16 {
		return fmt.Errorf("%w: a blob of %d parts", ErrDamaged, b.Parts)
	}
	parts := make([][]byte, b.Parts)
	err := each(ctx, len(parts), func(ctx context.Context, i int) error {
		e, err := r.kv.Get(ctx, fmt.Sprintf("%s%d", b.prefix(), i))
		parts[i] = e.Value
		return err
	})
	if err != nil {
		return fmt.Errorf("read a blob: %w", err)
	}
	raw := slices.Concat(parts...)
	if sha256.Sum256(raw) != b.Sum {
		return fmt.Errorf("%w: blob %s", ErrDamaged, b.ID)
	}
	return decode(raw, v)
}

// loadSegments reads the state before the entry that lists them. It reports false where a newer
// entry lists others.
func (r *Replica) loadSegments(ctx context.Context, e entry) (bool, error) {
	for _, s := range e.Segments {
		if s.To <= r.seq {
			continue
		}
		var values map[string]value
		if err := r.readBlob(ctx, s.Blob, &values); err != nil {
			return false, ignore(err, ErrNotFound)
		}
		for key, v := range values {
			if v.Seq > r.state[key].Seq {
				r.set(key, v)
			}
		}
		if s.From == 0 { // it has no deletions
			for key, v := range r.state {
				if _, ok := values[key]; !ok && v.Seq <= s.To {
					r.set(key, value{Seq: s.To})
				}
			}
		}
		r.seq = s.To
	}
	r.apply(entry{Seq: e.Seq, Segments: e.Segments})
	return true, nil
}

// Room is left for the entries of new leaders.
func (r *Replica) full() bool { return r.seq-r.base >= r.ring-8 }

// compact writes the values that no segment has into a new one, and lists the segments in an entry
// of the log. Segments that are not more than twice as large become part of the new one, so that
// each value is rewritten few times. Blobs that were there before, and that the entry does not
// list, have no reader after it.
func (r *Replica) compact(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callWait) // it is more than its caller asked for
	defer cancel()
	old, err := r.kv.List(ctx, "blob/")
	if err != nil {
		return fmt.Errorf("list the blobs: %w", err)
	}
	kept := slices.Clone(r.segments)
	next := segment{From: tuning.Last(kept).To, To: r.seq}
	values := r.since(&next)
	for n := len(kept); n > 0 && kept[n-1].Size <= 2*next.Size; n-- {
		next.From, kept = kept[n-1].From, kept[:n-1]
		values = r.since(&next)
	}
	if next.Blob, err = r.writeBlob(ctx, values); err != nil {
		return err
	}
	kept = append(kept, next)
	if err := r.append(ctx, entry{Segments: kept}); err != nil {
		return err
	}
	if next.From == 0 {
		maps.DeleteFunc(r.state, func(_ string, v value) bool { return v.Seq <= next.To && len(v.Packed) == 0 })
	}
	old = slices.DeleteFunc(old, func(e Entry) bool {
		return slices.ContainsFunc(kept, func(s segment) bool { return strings.HasPrefix(e.Key, s.Blob.prefix()) })
	})
	// The next compaction removes what cannot be removed now.
	_ = each(ctx, len(old), func(ctx context.Context, i int) error { return r.kv.Delete(ctx, old[i].Key) })
	return nil
}

func (r *Replica) since(s *segment) map[string]value {
	out := map[string]value{}
	s.Size = 0
	for key, v := range r.state {
		if v.Seq > s.From && (s.From > 0 || len(v.Packed) > 0) {
			out[key] = v
			s.Size += len(key) + len(v.Packed)
		}
	}
	return out
}

func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	if err := gob.NewEncoder(&out).Encode(v); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return out.Bytes(), nil
}

func decode(raw []byte, v any) error {
	if err := gob.NewDecoder(bytes.NewReader(raw)).Decode(v); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// Nil, which is deleted, becomes empty.
func pack(v []byte) []byte {
	if v == nil {
		return nil
	}
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, flate.DefaultCompression) // the level is valid
	_, _ = w.Write(v)                                       // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

func unpack(packed []byte) ([]byte, error) {
	if len(packed) == 0 {
		return nil, nil
	}
	out, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return out, nil
}
