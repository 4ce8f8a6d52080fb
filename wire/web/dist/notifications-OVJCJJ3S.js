import{a as o,b as r}from"./chunk-WFEDEVGT.js";import"./chunk-J5POVSWB.js";import"./chunk-RHDRITT2.js";export{r as NotificationFields,o as Notifications};
