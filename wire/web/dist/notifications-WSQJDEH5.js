import{a as o,b as r}from"./chunk-3BD44LHS.js";import"./chunk-3UEAJYHE.js";import"./chunk-SLJYOF4I.js";export{r as NotificationFields,o as Notifications};
