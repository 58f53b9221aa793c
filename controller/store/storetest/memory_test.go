package storetest_test

import (
	"testing"

	"go.uber.org/goleak"

	"pitchpipe/controller/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type memory struct{ *storetest.Memory }

func (m memory) Client(*testing.T) storetest.Client {
	return storetest.Client{Store: m.Memory.Client(storetest.Faults{})}
}

func TestTheSuiteHoldsInMemory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Target{
		New:       func(*testing.T) storetest.Backend { return memory{storetest.NewMemory()} },
		NoSilence: "nothing comes between a process and its own memory",
	})
}
