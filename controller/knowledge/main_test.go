package knowledge

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.uber.org/goleak"
)

// writerEnv makes the test binary a process that only writes, for a test to kill.
const writerEnv = "KNOWLEDGE_TEST_WRITES_TO"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerEnv); path != "" {
		os.Exit(writeUntilKilled(path))
	}
	goleak.VerifyTestMain(m)
}

// writeUntilKilled puts one observation and one record after the other, each pair
// in one change, and says so after each.
func writeUntilKilled(path string) int {
	s, err := Open(path, Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for i := 0; ; i++ {
		o := observation(fmt.Sprintf("job-%d", i), i)
		err := s.Update(func(tx *Tx) error {
			if _, err := tx.Put(o); err != nil {
				return err
			}
			return tx.PutJSON("jobs", o.Job, i)
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		_, _ = fmt.Fprintln(os.Stdout, i)
	}
}

// Put keeps an observation in its own change.
func (s *Store) Put(o Observation) (added bool, err error) {
	err = s.Update(func(tx *Tx) error {
		added, err = tx.Put(o)
		return err
	})
	return added && err == nil, err
}

// Check reads the whole file and returns all that is wrong with it, joined.
func (s *Store) Check() error {
	var found []error
	err := s.db.View(func(tx *bolt.Tx) error {
		for err := range tx.Check() {
			found = append(found, fmt.Errorf("%w: %w", ErrDamaged, err))
		}
		return tx.Bucket([]byte(bucketObservations)).ForEach(func(k, v []byte) error {
			var o Observation
			if err := json.Unmarshal(v, &o); err != nil {
				found = append(found, fmt.Errorf("%w: observation %q: %w", ErrDamaged, k, err))
			} else if o.ID != string(k) {
				found = append(found, fmt.Errorf("%w: observation %q is stored as %q", ErrDamaged, o.ID, k))
			}
			return nil
		})
	})
	return errors.Join(append(found, err)...)
}
