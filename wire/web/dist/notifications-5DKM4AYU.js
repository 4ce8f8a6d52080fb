import{a as o,b as r}from"./chunk-V5I3I7FC.js";import"./chunk-2MB2MPON.js";import"./chunk-6ND3UTRJ.js";import"./chunk-45JOR5LA.js";export{r as NotificationFields,o as Notifications};
