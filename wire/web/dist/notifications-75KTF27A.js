import{a as o,b as r}from"./chunk-ORINPBHR.js";import"./chunk-X6PE32SB.js";import"./chunk-VS4TEP7O.js";import"./chunk-4VSVKM3D.js";export{r as NotificationFields,o as Notifications};
