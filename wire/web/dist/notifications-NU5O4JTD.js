import{a as o,b as r}from"./chunk-D73OVQJ4.js";import"./chunk-233ZLZJV.js";import"./chunk-U3MWWF3B.js";import"./chunk-NIPK5IKA.js";export{r as NotificationFields,o as Notifications};
