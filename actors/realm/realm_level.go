package realm

import (
	"reflect"
)

// Rule levels let two versions of the program run in one cluster. Every node applies the same facts and must come to
// the same state. So a fact that an older program does not know, and a changed apply of a known fact, are not used
// before every node has the newer program, and the operator has raised the level of the cluster. The number of the
// level is in the replicated log and in each batch. A single node always has the level of its program.
//
// A release that adds a kind of fact or changes an apply:
//
//  1. raises Level by one,
//  2. adds the numbers of new kinds of facts to factLevels,
//  3. in a changed apply, behaves like the older program if Realm.Level is lower.

// Level is the newest rule level of this program. A program applies batches of its own level and of lower ones. Tests
// of two versions change it before anything else runs.
var Level uint16 = 5

// FirstLevel is the level of clusters, and of journals, that have no other one.
const FirstLevel uint16 = 1

// ImportLevel is the level from which on organizations are imported through the replicated log, because older programs
// do not know the steps of an import.
const ImportLevel uint16 = 2

// mentionsLevel is the level from which on the rows of messages have the groups that their texts mention. Programs of
// lower levels read such rows, and write them without the groups: storedMentions finds none then.
const mentionsLevel uint16 = 3

// loginsLevel is the level from which on users can log in with identities of other providers, and with a
// second factor.
const loginsLevel uint16 = 4

// mailLevel is the level from which on stored emails say where their answers go, and digests, welcome emails and
// reminders of invitations are sent.
const mailLevel uint16 = 5

// scopesLevel is the level from which on API keys can be limited to a scope: older programs would not limit them.
const scopesLevel uint16 = 5

// passkeysLevel is the level from which on users can have passkeys: older programs would let them log in without one.
const passkeysLevel uint16 = 5

// deliveriesLevel is the level from which on calls of bots' services are recorded and can be tested.
const deliveriesLevel uint16 = 5

// commandsLevel is the level from which on bots have commands.
const commandsLevel uint16 = 5

// repeatLevel is the level from which on scheduled messages can be repeated: older programs would send them once.
const repeatLevel uint16 = 5

// factLevels has the level from which on a fact may be recorded, by its number; numbers of formats, too. Facts that are
// not listed may be recorded at FirstLevel.
var factLevels = map[uint16]uint16{
	630: auditLevel,
	631: auditLevel,
	// identities and second factors
	680: mailLevel,
	681: mailLevel,
	640: loginsLevel, 641: loginsLevel, 642: loginsLevel, 643: loginsLevel, 644: loginsLevel,
	645: providersLevel,
	670: scopesLevel,
	671: assistLevel,
	710: usageLevel,
	711: helpLevel,
	695: scimLevel, 696: scimLevel, 697: scimLevel, 698: scimLevel,
	712: ownExportsLevel,
	713: complianceLevel,
	682: callsLevel,
	683: callsLevel,
	690: passkeysLevel, 691: passkeysLevel, 692: passkeysLevel, 693: passkeysLevel, 694: passkeysLevel,
	700: deliveriesLevel,
	701: commandsLevel,
}

// levelOf returns the level from which on a fact may be recorded.
func levelOf(f Fact) uint16 {
	if len(factLevels) == 0 {
		return FirstLevel
	}
	return max(FirstLevel, factLevels[numberByType[reflect.TypeOf(f).Elem()]])
}

// Level returns the rule level at which facts are recorded and applied at this moment.
func (r *Realm) Level() uint16 {
	if r.level == 0 {
		return Level
	}
	return r.level
}

// lowLevelTurn is the panic that ends a turn at its first fact if the level of the cluster is too low for the fact.
// Nothing has changed by then.
type lowLevelTurn struct{}

// errLowLevel is the refusal of commands that need a fact of a higher level.
func errLowLevel() *Refusal {
	return Refuse(Busy, "SERVER_OVERLOADED",
		"The servers of this organization are being upgraded. This will work when all of them are.")
}

// NewestNumberAt returns the largest number of a fact, event or change of format that is written at a level.
func NewestNumberAt(level uint16) (newest uint16) {
	for _, n := range formatNumbers {
		if factLevels[n] <= level {
			newest = max(newest, n)
		}
	}
	for n := range typeByNumber {
		if factLevels[n] <= level {
			newest = max(newest, n)
		}
	}
	return newest
}
