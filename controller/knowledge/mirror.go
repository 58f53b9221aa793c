package knowledge

import (
	"context"
	"fmt"
	"strconv"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Snapshot is the content of a Mirror, or its difference from the Snapshot before.
type Snapshot struct {
	Full   bool              // Values is the whole content
	Values map[string][]byte // nil values were deleted
}

// Mirror is the state that several controllers share. The file of each is a working copy:
// a change is written to the mirror first, and then to the file. Keys are any texts.
type Mirror interface {
	// Load calls apply with a Snapshot. Where apply fails, the next Snapshot has the same
	// changes again.
	Load(ctx context.Context, apply func(Snapshot) error) error
	// Write makes all of the changes or none; a nil value deletes. They are durable when
	// Write returns. After an error they may take effect later, before the next change.
	Write(ctx context.Context, changes map[string][]byte) error
}

// mirrorWait bounds one change of the mirror.
const mirrorWait = 20 * time.Second

// Refresh brings the file up to date with the mirror. It only reads the mirror, so that a
// standby may call it.
func (s *Store) Refresh(ctx context.Context) error {
	if s.mirror == nil {
		return nil
	}
	if err := s.mirror.Load(ctx, s.load); err != nil {
		return fmt.Errorf("load the shared knowledge: %w", err)
	}
	return nil
}

// Adopt is Refresh for a new leader: the file accepts changes from now on. An empty mirror
// gets the schema.
func (s *Store) Adopt(ctx context.Context) error {
	if err := s.Refresh(ctx); err != nil {
		return err
	}
	s.stale.Store(false)
	if s.shared || s.mirror == nil {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, mirrorWait)
	defer cancel()
	if err := s.mirror.Write(call, map[string][]byte{keySchema: []byte(strconv.Itoa(SchemaVersion))}); err != nil {
		return fmt.Errorf("begin the shared knowledge: %w", err)
	}
	s.shared = true
	return nil
}

func (s *Store) load(snap Snapshot) error {
	if raw, ok := snap.Values[keySchema]; ok || snap.Full && len(snap.Values) > 0 {
		if err := checkSchema(raw); err != nil {
			return err
		}
		s.shared = true
	}
	err := s.db.Update(func(tx *bolt.Tx) error {
		if snap.Full {
			if err := clearFile(tx); err != nil {
				return err
			}
		}
		for key, value := range snap.Values {
			if err := apply(tx, key, value); err != nil {
				return err
			}
		}
		return nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache = nil
	return err
}

func clearFile(tx *bolt.Tx) error {
	for _, name := range []string{bucketObservations, bucketRecords} {
		if err := tx.DeleteBucket([]byte(name)); err != nil {
			return fmt.Errorf("clear %s: %w", name, err)
		}
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return fmt.Errorf("create %s: %w", name, err)
		}
	}
	return tx.Bucket([]byte(bucketMeta)).Delete([]byte(keyModel))
}
