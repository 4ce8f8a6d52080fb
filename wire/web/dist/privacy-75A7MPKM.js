import{a as o}from"./chunk-CR4AOIJU.js";import"./chunk-J5POVSWB.js";import"./chunk-RHDRITT2.js";export{o as Privacy};
