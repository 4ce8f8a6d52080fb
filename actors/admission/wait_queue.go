package admission

import (
	"slices"
	"time"
)

// Account is the account that a waiting item belongs to.
type Account[K comparable] struct {
	User K    // the account that is charged: for a bot its owner
	Bot  bool // the item is a bot's
	// Organization is the account's organization, if the queue is shared by several.
	Organization string
}

// WaitQueue holds waiting items in two classes of priority: people first, then bots. The accounts of a class are served
// round-robin, so an account with many items does not delay the others. The bots of one owner are one account, and
// count together with their owner. K identifies an account. The zero value is not valid; use NewWaitQueue.
type WaitQueue[K comparable, T any] struct {
	max, maxAccount, maxOrganization int
	count                            int
	organizations                    map[string]int // items of each organization
	people, bots                     class[K, T]    // people have priority
}

// class holds the waiting accounts of one class of priority.
type class[K comparable, T any] struct {
	byUser map[K]*waiter[K, T]
	order  []*waiter[K, T] // round-robin: the first one is next
}

// waiter is one account with its items, oldest first. It has at least one item.
type waiter[K comparable, T any] struct {
	user         K
	organization string
	items        []waitingItem[T]
}

type waitingItem[T any] struct {
	value T
	since time.Duration
}

// NewWaitQueue returns an empty queue of one organization for at most max items in all, and at most maxAccount items of
// one account.
func NewWaitQueue[K comparable, T any](max, maxAccount int) *WaitQueue[K, T] {
	return NewSharedWaitQueue[K, T](max, maxAccount, max)
}

// NewSharedWaitQueue returns an empty queue that organizations share; each has at most maxOrganization items.
func NewSharedWaitQueue[K comparable, T any](max, maxAccount, maxOrganization int) *WaitQueue[K, T] {
	return &WaitQueue[K, T]{max: max, maxAccount: maxAccount, maxOrganization: maxOrganization,
		organizations: map[string]int{}, people: class[K, T]{byUser: map[K]*waiter[K, T]{}},
		bots: class[K, T]{byUser: map[K]*waiter[K, T]{}}}
}

// Len returns the number of items.
func (q *WaitQueue[K, T]) Len() int { return q.count }

// Add adds an item. If the queue is full, it refuses an item and returns it. Of an account that has maxAccount items
// already, it is the newest item of its bots if a person adds one, else the new item. Of an organization that has
// maxOrganization items, and of a full queue, it is the newest item of the account with the most items. Bots' items are
// refused before those of people.
func (q *WaitQueue[K, T]) Add(a Account[K], value T, now time.Duration) (refused T, full bool) {
	var from *victim[K, T]
	switch l := q.classOf(a); {
	case q.people.count(a.User)+q.bots.count(a.User) >= q.maxAccount:
		if w := q.bots.byUser[a.User]; w != nil && !a.Bot {
			from = &victim[K, T]{&q.bots, w}
		}
		full = true
	case q.organizations[a.Organization] >= q.maxOrganization:
		from, full = q.chooseVictim(a, func(w *waiter[K, T]) bool { return w.organization == a.Organization }), true
	case q.count >= q.max:
		from, full = q.chooseVictim(a, func(*waiter[K, T]) bool { return true }), true
	default:
		q.append(l, a, waitingItem[T]{value, now})
		return refused, false
	}
	if from == nil {
		return value, full
	}
	refused = from.dropNewest()
	q.remove(from.waiter.organization, 1)
	q.append(q.classOf(a), a, waitingItem[T]{value, now})
	return refused, full
}

// append adds an item of an account to its class.
func (q *WaitQueue[K, T]) append(l *class[K, T], a Account[K], item waitingItem[T]) {
	w := l.byUser[a.User]
	if w == nil {
		w = &waiter[K, T]{user: a.User, organization: a.Organization}
		l.byUser[a.User] = w
		l.order = append(l.order, w)
	}
	w.items = append(w.items, item)
	q.count++
	q.organizations[a.Organization]++
}

// remove counts n items less.
func (q *WaitQueue[K, T]) remove(organization string, n int) {
	q.count -= n
	if q.organizations[organization] -= n; q.organizations[organization] == 0 {
		delete(q.organizations, organization)
	}
}

// count returns how many items an account has in the class.
func (l *class[K, T]) count(user K) int {
	if w := l.byUser[user]; w != nil {
		return len(w.items)
	}
	return 0
}

func (q *WaitQueue[K, T]) classOf(a Account[K]) *class[K, T] {
	if a.Bot {
		return &q.bots
	}
	return &q.people
}

// victim is the account whose newest item is refused.
type victim[K comparable, T any] struct {
	class  *class[K, T]
	waiter *waiter[K, T]
}

// chooseVictim returns the account that loses an item so that an item of a can be added, among the accounts for which
// among returns true. If a is a person and bots wait, it is the account with the most items of bots; else the account
// of a's class with the most items, if it still has at least as many as a afterwards. It returns nil if the new item of
// a must be refused.
func (q *WaitQueue[K, T]) chooseVictim(a Account[K], among func(*waiter[K, T]) bool) *victim[K, T] {
	l, least := q.classOf(a), 2+q.classOf(a).count(a.User)
	if !a.Bot && slices.ContainsFunc(q.bots.order, among) {
		l, least = &q.bots, 1
	}
	var most *waiter[K, T]
	for _, w := range l.order {
		if among(w) && len(w.items) >= least && (most == nil || len(w.items) > len(most.items)) {
			most = w
		}
	}
	if most == nil {
		return nil
	}
	return &victim[K, T]{l, most}
}

// dropNewest removes the newest item.
func (v *victim[K, T]) dropNewest() T {
	last := len(v.waiter.items) - 1
	value := v.waiter.items[last].value
	v.waiter.items = v.waiter.items[:last]
	if last == 0 {
		v.class.remove(v.waiter)
	}
	return value
}

// remove removes an account without items.
func (l *class[K, T]) remove(w *waiter[K, T]) {
	delete(l.byUser, w.user)
	for i, x := range l.order {
		if x == w {
			l.order = append(l.order[:i], l.order[i+1:]...)
			return
		}
	}
}

// Next removes and returns the item that is next, and how long it has waited.
func (q *WaitQueue[K, T]) Next(now time.Duration) (value T, waited time.Duration, ok bool) {
	l := &q.people
	if len(l.order) == 0 {
		l = &q.bots
	}
	if len(l.order) == 0 {
		return value, 0, false
	}
	w := l.order[0]
	item := w.items[0]
	w.items[0] = waitingItem[T]{}
	l.order[0] = nil
	l.order = l.order[1:]
	if w.items = w.items[1:]; len(w.items) > 0 {
		l.order = append(l.order, w)
	} else {
		delete(l.byUser, w.user)
	}
	q.remove(w.organization, 1)
	return item.value, now - item.since, true
}

// Expire removes and returns the items that have waited since before a time.
func (q *WaitQueue[K, T]) Expire(before time.Duration) (expired []T) {
	for _, l := range []*class[K, T]{&q.people, &q.bots} {
		remaining := l.order[:0]
		for _, w := range l.order {
			n := 0
			for n < len(w.items) && w.items[n].since < before {
				expired = append(expired, w.items[n].value)
				n++
			}
			if w.items = w.items[n:]; len(w.items) > 0 {
				remaining = append(remaining, w)
			} else {
				delete(l.byUser, w.user)
			}
			q.remove(w.organization, n)
		}
		clear(l.order[len(remaining):])
		l.order = remaining
	}
	return expired
}
