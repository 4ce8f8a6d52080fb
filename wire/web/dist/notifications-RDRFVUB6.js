import{a as o,b as r}from"./chunk-XZHS567H.js";import"./chunk-ZPI3YXJB.js";import"./chunk-SCOGSAOC.js";import"./chunk-KVT23WIS.js";export{r as NotificationFields,o as Notifications};
