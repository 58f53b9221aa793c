package parse_test

import (
	"errors"
	"strings"
	"testing"

	"pitchpipe/driver/slurm/parse"
)

func TestRecordedAssociations(t *testing.T) {
	t.Parallel()
	got, err := parse.Associations(recorded(t, "scontrol-assoc-mgr.txt"))
	if err != nil || len(got.Associations) != 8 || len(got.QOS) != 2 {
		t.Fatalf("%d associations and %d QOS (%v), want 8 and 2", len(got.Associations), len(got.QOS), err)
	}
	account, alice := got.Associations[2], got.Associations[5]
	if alice.User != "alice" || alice.UID != 1001 || alice.Account != "alpha" || alice.ID != 5 || alice.Parent != 0 {
		t.Errorf("alice's association is %+v", alice)
	}
	if alice.Limits["GrpTRES=cpu"] != (parse.Bound{Limit: 2, Used: 4}) || alice.Limits["GrpTRES=mem"] != (parse.Bound{Limit: parse.Unlimited, Used: 400}) {
		t.Errorf("alice's group limits are %v", alice.Limits)
	}
	if alice.Limits["MaxWall"].Limit != 120 || alice.Limits["MaxTRESPerJob=mem"].Limit != 900 || alice.Limits["MaxTRESPerNode=cpu"].Limit != 5 || alice.Limits["MaxTRESMinsPerJob=cpu"].Limit != 1000 {
		t.Errorf("alice's limits of a job are %+v", alice.Limits)
	}
	if account.User != "" || account.Parent != 1 || account.Limits["GrpTRESMins=cpu"].Limit != 100 || account.Limits["GrpWall"].Limit != 300 ||
		account.Limits["GrpTRESRunMins=cpu"] != (parse.Bound{Limit: 5000, Used: 40}) {
		t.Errorf("the account's association is %+v", account)
	}
	high := got.QOS[1]
	if high.Name != "high" || high.Limits["GrpTRES=cpu"] != (parse.Bound{Limit: 5, Used: 3}) || high.Limits["MaxWall"].Limit != 60 || high.Limits["MaxTRESPerJob=cpu"].Limit != 2 || high.Limits["MinTRESPerJob=cpu"].Limit != 1 {
		t.Errorf("the QOS is %+v", high)
	}
	if high.Users["1001"]["MaxTRESPerUser=cpu"] != (parse.Bound{Limit: 3, Used: 3}) || high.Accounts["alpha"]["MaxTRESPerAccount=cpu"] != (parse.Bound{Limit: 4, Used: 3}) {
		t.Errorf("what one may use of it is %v and %v", high.Users, high.Accounts)
	}
	if _, limited := got.QOS[0].Limits["MaxWall"]; limited {
		t.Errorf("the QOS without limits is %+v", got.QOS[0])
	}
}

func TestAssociationsThatAreNotKnown(t *testing.T) {
	t.Parallel()
	whole := string(recorded(t, "scontrol-assoc-mgr.txt"))
	for _, c := range []struct{ name, old, new string }{
		{"nothing", whole, ""},
		{"a limit that is no number", "GrpTRES=cpu=2(4)", "GrpTRES=cpu=two(4)"},
		{"a use that is cut off", "GrpTRES=cpu=2(4)", "GrpTRES=cpu=2(4"},
		{"a use below nothing", "GrpTRES=cpu=2(4)", "GrpTRES=cpu=2(-4)"},
		{"a resource twice", "GrpTRES=cpu=2(4)", "GrpTRES=cpu=2(4),cpu=9(0)"},
		{"a field twice", "MaxWallPJ=120", "MaxWallPJ=120 MaxWallPJ=999"},
		{"a field that is missing", "MaxWallPJ=120", ""},
		{"a user without a number", "alice(1001)", "alice"},
		{"a word that is no field", "MaxWallPJ=120", "MaxWallPJ=120 minutes"},
		{"a QOS without its users", "User Limits=", "Limits="},
		{"a line of another kind", "QOS Records", "Records of QOS"},
	} {
		text := strings.ReplaceAll(whole, c.old, c.new)
		if text == whole {
			t.Errorf("%s: %q is not in the record", c.name, c.old)
		}
		if _, err := parse.Associations([]byte(text)); !errors.Is(err, parse.ErrFormat) {
			t.Errorf("%s: %v, want %v", c.name, err, parse.ErrFormat)
		}
	}
}

func TestRecordedPartitions(t *testing.T) {
	t.Parallel()
	text := string(recorded(t, "scontrol-partition.txt"))
	got, err := parse.PartitionRecords([]byte(text))
	if err != nil || len(got) != 1 || got[0] != (parse.Partition{Name: "main", Default: true}) {
		t.Errorf("partitions %+v (%v), want main without a QOS", got, err)
	}
	text = strings.Replace(text, "QoS=N/A", "QoS=part TRESBillingWeights=CPU=2.0", 1)
	got, err = parse.PartitionRecords([]byte(text))
	if err != nil || len(got) != 1 || got[0] != (parse.Partition{Name: "main", Default: true, QOS: "part", Weights: "CPU=2.0"}) {
		t.Errorf("partitions %+v (%v), want main with the QOS part, weighed", got, err)
	}
	if _, err := parse.PartitionRecords([]byte("PartitionName=x\n")); !errors.Is(err, parse.ErrFormat) {
		t.Errorf("a partition that says nothing: %v, want %v", err, parse.ErrFormat)
	}
}

func FuzzAssociations(f *testing.F) {
	f.Add(recorded(f, "scontrol-assoc-mgr.txt"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := parse.Associations(data)
		if err != nil && !errors.Is(err, parse.ErrFormat) {
			t.Errorf("error %v, want one that is %v", err, parse.ErrFormat)
		}
		for _, a := range got.Associations {
			if a.Account == "" {
				t.Errorf("an association without an account: %+v", a)
			}
		}
	})
}
