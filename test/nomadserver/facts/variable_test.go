package facts_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadagent"
)

func TestVariables(t *testing.T) {
	hold(t, nomadagent.Options{}, []fact{
		{"a variable is created once, and a second time is a conflict that shows what is there", createOnce},
		{"an update with a stale index is a conflict", staleVariable},
		{"what is over 64 KiB is refused", tooLarge},
		{"variables are listed by prefix, and the list waits for a change", listVariables},
		{"a lock has one holder, keeps plain writers out and is given back", lock},
	})
}

func createOnce(t *testing.T, c cluster) {
	path := "tuner/" + c.id
	first, _, err := c.Variables().CheckedUpdate(&api.Variable{Path: path, Items: api.VariableItems{"a": "1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = c.Variables().CheckedUpdate(&api.Variable{Path: path, Items: api.VariableItems{"a": "2"}}, nil)
	var conflict api.ErrCASConflict
	if !errors.As(err, &conflict) || conflict.Conflict == nil {
		t.Fatalf("%v, want a conflict", err)
	}
	if diff := cmp.Diff(api.VariableItems{"a": "1"}, conflict.Conflict.Items); diff != "" || conflict.Conflict.ModifyIndex != first.ModifyIndex {
		t.Error(diff)
	}
}

func staleVariable(t *testing.T, c cluster) {
	path := "tuner/" + c.id
	first, _, err := c.Variables().Create(&api.Variable{Path: path, Items: api.VariableItems{"a": "1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	second := *first
	second.Items = api.VariableItems{"a": "2"}
	now, _, err := c.Variables().CheckedUpdate(&second, nil)
	if err != nil || now.ModifyIndex <= first.ModifyIndex {
		t.Fatalf("%v, %v", now, err)
	}
	_, _, err = c.Variables().CheckedUpdate(first, nil)
	if _, ok := errors.AsType[api.ErrCASConflict](err); !ok {
		t.Errorf("%v, want a conflict", err)
	}
	read, _, err := c.Variables().Read(path, nil)
	if err != nil || read.Items["a"] != "2" {
		t.Errorf("%v, %v", read, err)
	}
	_, _, err = c.Variables().Read(path+"/none", nil)
	if !errors.Is(err, api.ErrVariablePathNotFound) {
		t.Errorf("%v", err)
	}
}

func tooLarge(t *testing.T, c cluster) {
	path := "tuner/" + c.id
	_, _, err := c.Variables().Create(&api.Variable{Path: path, Items: api.VariableItems{"a": strings.Repeat("x", 66_000)}}, nil)
	refused(t, err, 400, "variables are limited to 64KiB in total size")
	if _, _, err := c.Variables().Create(&api.Variable{Path: path, Items: api.VariableItems{"a": strings.Repeat("x", 65_000)}}, nil); err != nil {
		t.Error(err)
	}
}

func listVariables(t *testing.T, c cluster) {
	path := "tuner/" + c.id
	for _, p := range []string{path + "/a", path + "/b", "other/" + c.id} {
		if _, _, err := c.Variables().Create(&api.Variable{Path: p, Items: api.VariableItems{"a": "1"}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	list, meta, err := c.Variables().PrefixList(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].Path != path+"/a" {
		t.Errorf("the list is %v", list)
	}
	done := wait(func() ([]*api.VariableMetadata, *api.QueryMeta, error) {
		list, m, err := c.Variables().PrefixList(path, &api.QueryOptions{WaitIndex: meta.LastIndex, WaitTime: patience})
		if err == nil && (len(list) != 3 || m.LastIndex <= meta.LastIndex) {
			err = errors.New("it came back without the change")
		}
		return list, m, err
	})
	if _, _, err := c.Variables().Create(&api.Variable{Path: path + "/c", Items: api.VariableItems{"a": "1"}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func lock(t *testing.T, c cluster) {
	path := "tuner/" + c.id
	locks := func() *api.Locks {
		l, err := c.Locks(api.WriteOptions{}, api.Variable{Path: path, Lock: &api.VariableLock{TTL: "10s", LockDelay: "10s"}},
			api.LocksOptionWithMaxRetries(0))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first, second := locks(), locks()
	id, err := first.Acquire(t.Context())
	if err != nil || id == "" {
		t.Fatalf("%q, %v", id, err)
	}
	if _, err := second.Acquire(t.Context()); !errors.Is(err, api.ErrLockConflict) {
		t.Errorf("the second acquired: %v", err)
	}
	if _, _, err := c.Variables().Update(&api.Variable{Path: path, Items: api.VariableItems{"a": "1"}}, nil); err == nil {
		t.Error("a plain write was taken")
	}
	if err := first.Renew(t.Context()); err != nil {
		t.Errorf("renewing: %v", err)
	}
	if err := first.Release(t.Context()); err != nil {
		t.Errorf("releasing: %v", err)
	}
	if _, err := second.Acquire(t.Context()); err != nil {
		t.Errorf("after the release: %v", err)
	}
	_ = second.Release(t.Context())
}
