import{a as o,b as r}from"./chunk-BSBNX23O.js";import"./chunk-ULRCTWUT.js";import"./chunk-HIZALV3K.js";export{r as NotificationFields,o as Notifications};
