package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutants are faults in the parts that must not lose anything when nodes fail, and in those that keep strangers out.
// Each is a change of one place of the source, after which a test must fail.
var mutants = []struct {
	name, file, old, new string
	pkg, test            string
}{
	{"no check of epochs", "snapshot/applied.go", "if err := s.checkEpoch(st, e.Epoch); err != nil {",
		"if err := s.checkEpoch(st, e.Epoch); false {", "./snapshot/replicated", "TestOldEpochIsRefused"},
	{"no fence between two leaders", "snapshot/applied_own.go", "return max(st.epoch, s.owned)", "return st.epoch",
		"./snapshot/replicated", "TestLeadershipFencesOlderOnes"},
	{"a fence that a crash forgets", "snapshot/applied_own.go", "setNumber(b, ownedKey, s.owned)", "",
		"./snapshot/replicated", "TestLeadershipFencesOlderOnes"},
	{"no clock in the batch", "snapshot/applied.go", "After: b.After, Now: b.Now,", "After: b.After,",
		"./snapshot/replicated", "TestReplication"},
	{"an answer before a majority has the entry", "snapshot/replicated/journal.go",
		"for i, f := range futures {", "for i, f := range futures[:0] {", "./snapshot/replicated", "TestNoQuorum"},
	{"a Raft snapshot before the sync", "snapshot/replicated/state_machine.go",
		"if err := s.n.store.Load().SyncApplied(k.snapshot.Index); err != nil {\n\t\treturn s.n.storeFailed(err)\n\t}",
		"_ = k", "./snapshot/replicated", "TestPowerLossOfAllUnsynced"},
	{"the index of a backup that is not restored", "snapshot/replicated/node.go",
		"if installing {\n\t\tif err := n.finishInstall(x)", "if false {\n\t\tif err := n.finishInstall(x)",
		"./snapshot/replicated", "TestPowerLossOfAllUnsynced"},
	{"a snapshot is in no durability manifest", "snapshot/durability.go",
		"answered := s.manifestCalls.Load()\n\terr := s.writeManifestLocked(s.durableFiles, false)",
		"err := s.writeManifestLocked(s.durableFiles, false)\n\tanswered := s.manifestCalls.Load()", "./snapshot",
		"TestSnapshotsShareDurabilityManifests"},
	{"no due times of organizations that are asleep", "actors/sleep.go",
		"if s.due != realm.NeverDue {\n\t\theap.Push(&z.due, s)", "if s.due != realm.NeverDue {\n\t\t_ = s", "./actors",
		"TestDueTimeWakes"},
	{"no due times at a new leader", "actors/cluster_sleep.go",
		"s.place = len(z.due)\n\t\t\tz.due = append(z.due, s)", "_ = s", "./actors", "TestCoresWakeWhenDue"},
	{"a new leader does not own what sleeps", "actors/owner_tasks.go", "&& srv.ownsSleepers()",
		"&& srv.cluster == nil", "./actors", "TestCoresSleep"},
	{"facts wake no other core", "actors/cluster.go", "srv.wakeIfOlder(id, seq)", "_ = seq", "./actors",
		"TestCoresSleep"},
	{"old facts are known of an organization that is asleep", "snapshot/asleep.go",
		"(anyEpoch || a.Epoch == epoch) && a.Seq == last", "true", "./snapshot", "TestAsleep"},
	{"an organization with a waiting poll leaves memory", "actors/role_asleep.go", "if r.rest.busy {", "if false {",
		"./actors", "TestParkedPollKeepsAwake"},
	{"a cache that is not purged", "actors/local_realm.go", "a.srv.renderer.ForgetRealm(a.handle.id)", "",
		"./actors", "TestClusterMarkdownConfigIsDropped"},
	{"reads from the old state of a leader", "actors/owner/turns.go", "if t.env.Confirm != nil && isStored",
		"if false && isStored", "./actors", "TestClusterLeaderIsCutOff"},
	{"state that is not thrown away", "actors/role_loading.go",
		"r.follower.Replace(l.realm, l.realm.Seq())",
		"r.follower.Replace(r.Realm(), l.realm.Seq())", "./actors", "TestClusterLeaderIsCutOff"},
	{"facts that are not stored, kept at a change of the leader", "actors/role_owner.go",
		"keepState := r.turns.AllStored() &&", "keepState :=", "./actors",
		"TestClusterLeaderIsCutOff"},
	{"events for clients of other cores, forgotten at a planned move", "actors/delivery/owned.go",
		"u.acked[k] = min(u.acked[k], o.homes.lowest(k), o.main.Durable())", "_ = k", "./actors",
		"TestPlannedMoveKeepsState"},
	{"an old answer that confirms the leader", "snapshot/replicated/confirm.go", " && x.check >= check {", " {",
		"./snapshot/replicated", "TestVerifyLeaderTakesNoOldAnswer"},
	{"a sum with deleted entries", "snapshot/replicated/compared_log.go",
		"err = c.verifier.Close()\n\t\tc.beginSum()\n\t\tc.truncated = true", "", "./snapshot/replicated",
		"TestDeletedEntriesAreNotCompared"},
	{"a wrong sum that stops a core", "snapshot/replicated/compared_log.go",
		"n.confirmDamage(r.Range.Start, r.Range.End, r.Err)", "n.failed.fail(r.Err)", "./snapshot/replicated",
		"TestWrongSumIsPassedOver"},
	{"acknowledgements from before the ownership", "actors/delivery/delivery.go",
		"all.opened[sessionActor] = all.openings", "", "./actors", "TestReportsFromBeforeTheOwnership"},
	{"Raft takes the certificate of an edge", "cmd/internal/cluster/senders.go", "peer.RaftProtocol:  FromCores,",
		"peer.RaftProtocol: FromServing,", "./cmd/internal/cluster", "TestEveryProtocolAsEverySender"},
	{"an edge imports", "cmd/internal/cluster/link_table.go", `"import", FromCore,`, `"import", FromServing,`,
		"./cmd/internal/cluster", "TestEveryCallAsEverySender"},
	{"a removed node streams requests", "cmd/internal/cluster/senders.go", "peer.HTTPProtocol:  FromServing,",
		"peer.HTTPProtocol:  FromAll,", "./cmd/internal/cluster", "TestEveryProtocolAsEverySender"},
	{"an edge gets all files", "cmd/internal/cluster/senders.go", "peer.FilesProtocol: FromCore,",
		"peer.FilesProtocol: FromServing,", "./cmd/internal/cluster", "TestEveryProtocolAsEverySender"},
	{"an edge runs every operator command", "cmd/internal/operator/operator.go",
		"if !command.from.Includes(c.From) || command.self", "if command.self", "./cmd/internal/operator",
		"TestEveryCommandAsEverySender"},
	{"an edge gets the server's secret", "cmd/internal/cluster/leader.go", "Settings: c.Settings,\n\t\tGeneration:",
		"Settings: c.Settings, Secret: c.Secret,\n\t\tGeneration:", "./cmd/internal/cluster",
		"TestGreetingHasNoSecret"},
	{"an edge gets the keys of login tokens", "cmd/internal/server/node.go", `"max-body", "upload-quota",`,
		`"max-body", "upload-quota", "jwt-keys",`, "./cmd/internal/server", "TestStolenEdgeForgesNothing"},
	{"an edge refuses from its old state", "wire/httpd/own_writes.go", "if err == nil || !mayChange(err) {",
		"if true {", "./cmd/internal/server", "TestNothingIsMissingAtALateEdge"},
	{"headers of nodes are taken from clients", "wire/httpd/forward_files.go",
		"	deleteNodeHeaders(&request.Header)\n", "", "./wire/httpd", "TestClientSendsNoNodeHeaders"},
	{"session expiry ignored", "actors/accounts.go", "if s == nil || srv.now().Unix() >= s.Expires() {",
		"if s == nil {", "./actors", "TestExpiredSessionIsNobodys"},
	{"Web Push without the address guard", "cmd/internal/server/server.go",
		"Client:  webhooks.NewHTTPClient(s.webhookNetworks),",
		`Client: webhooks.NewHTTPClient([]netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}),`,
		"./cmd/internal/server", "TestWebPushGuardsPrivateAddresses"},
}

// TestMutants builds each fault in and requires that its test fails. Without MUTANTS=1 it only checks that the places
// exist, because each fault is a build: make mutants.
func TestMutants(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	run := os.Getenv("MUTANTS") != ""
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			path := filepath.Join(root, m.file)
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(source), m.old); n != 1 {
				t.Fatalf("%s has %q %d times, want once: change the mutant with the code", m.file, m.old, n)
			}
			if run {
				mutated := strings.Replace(string(source), m.old, m.new, 1)
				if out, failed := testMutant(t, root, path, mutated, m.pkg, m.test); !failed {
					t.Errorf("%s does not find it:\n%s", m.test, out)
				} else {
					t.Logf("%s fails:\n%s", m.test, firstErrors(out))
				}
			}
		})
	}
}

// testMutant runs a test with another content of a file. It reports whether the test failed; a build that fails does
// not count.
func testMutant(t *testing.T, root, path, content, pkg, test string) (output string, failed bool) {
	t.Helper()
	dir := t.TempDir()
	file, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	writeFile(t, file, content)
	data, err := json.Marshal(map[string]map[string]string{"Replace": {path: file}})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, overlay, string(data))
	cmd := exec.Command("go", "test", "-overlay", overlay, pkg, "-run", "^"+test+"$", "-count=1", "-timeout", "5m")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	output = string(out)
	return output, err != nil && strings.Contains(output, "--- FAIL: "+test)
}

// firstErrors returns the first lines of a test's output that are errors.
func firstErrors(output string) string {
	var list []string
	for _, line := range strings.Split(output, "\n") {
		if strings.Contains(line, "_test.go:") && len(list) < 3 {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return strings.Join(list, "\n")
}
