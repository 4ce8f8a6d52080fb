import{a as o,b as r}from"./chunk-RCFAA3CQ.js";import"./chunk-4YXROTDI.js";import"./chunk-T25HULAN.js";import"./chunk-BTS5HUHD.js";export{r as NotificationFields,o as Notifications};
