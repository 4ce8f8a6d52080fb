import{a as o,b as r}from"./chunk-5OTYPFIU.js";import"./chunk-VD43SUVE.js";import"./chunk-SCKUP2UZ.js";import"./chunk-AADEWNYY.js";export{r as NotificationFields,o as Notifications};
